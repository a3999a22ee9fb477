package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// Option gives a registry what no document can: functions, a clock, a client. Each holds for the registry's life, for every
// instance, and must be safe for concurrent use.
type Option func(*options)

type options struct {
	matchers   map[string]matcher
	pipeline   func(name string, base pipeline.Builder) pipeline.Builder
	onChange   func(breaker.Change)
	onRetry    func(context.Context, retry.Scheduled)
	onStore    leaf.OnStore
	onReload   func(error)
	retryAfter func(error) (time.Duration, bool)
	client     redis.UniversalClient
	clock      clockwork.Clock
	rand       func() float64
	errs       []error
}

func newOptions(opts []Option) (options, error) {
	o := options{matchers: map[string]matcher{}}
	for _, set := range opts {
		if set == nil {
			o.errs = append(o.errs, errors.New("registry: an option is nil: want one made by a With function"))
			continue
		}
		set(&o)
	}
	return o, errors.Join(o.errs...)
}

func (o *options) bad(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf("registry: "+format, args...))
}

// WithMatcher registers a question about errors under a name that retry-on, stop-on and record-on may use. It is asked about
// errors that are not nil, and must be pure. The names all, timeout and context are built in and cannot be taken.
func WithMatcher(name string, matches func(err error) bool) Option {
	return func(o *options) {
		_, taken := o.matcher(name)
		switch {
		case name == "" || matches == nil:
			o.bad("the matcher %q: want a name and a function", name)
		case taken:
			o.bad("the matcher %q: want a name that is not taken yet", name)
		default:
			o.matchers[name] = matches
		}
	}
}

// WithPipeline lets the program add to each pipeline what is code: OnRejected, Observe, With. f is told the pipeline's name and
// an empty builder of that name, once per load and reload, and returns the builder that the document's layers are put on. It
// must not use the registry. A registry that is switched off (enabled: false) leaves these out as well.
func WithPipeline(f func(name string, base pipeline.Builder) pipeline.Builder) Option {
	return func(o *options) { o.pipeline = f }
}

// WithOnChange is breaker.Config.OnChange of every circuit breaker; nil = nobody is told.
func WithOnChange(f func(breaker.Change)) Option { return func(o *options) { o.onChange = f } }

// WithOnRetry is retry.Config.OnRetry of every retry; nil = nobody is told.
func WithOnRetry(f func(context.Context, retry.Scheduled)) Option {
	return func(o *options) { o.onRetry = f }
}

// WithOnStore is told of the store's failures and recoveries by every shared guard; nil = nobody is told.
func WithOnStore(f leaf.OnStore) Option { return func(o *options) { o.onStore = f } }

// WithOnReload is told the result of every [Registry.Reload] and of every change that a [Registry.Watch] finds, nil for one that
// is in force now; nil = nobody is told. Loading is none of them. It hears all that Watch's onError hears, before it and with the
// same error: of a file by its path, also that it is gone. It runs on the goroutine that reloads, after everything else, and may
// use the registry, but not reload or close it: declare that before it is made, as the example does. slogx.OnReload is one; to
// have otelx follow what a reload brought, it is func(error) { _ = telemetry.WatchAll(reg) }.
func WithOnReload(f func(err error)) Option { return func(o *options) { o.onReload = f } }

// WithRetryAfter is retry.Config.RetryAfter of every retry; nil = the default there.
func WithRetryAfter(f func(err error) (time.Duration, bool)) Option {
	return func(o *options) { o.retryAfter = f }
}

// WithClient is the client of the shared guards: for Sentinel, Cluster, or one that the program has already. It goes before the
// document's store.redis, and stays open when the registry is closed.
func WithClient(client redis.UniversalClient) Option {
	return func(o *options) {
		if check.Nil(client) {
			o.bad("the client is %s: want a redis client", check.Type(client))
			return
		}
		o.client = client
	}
}

// WithClock is the clock of every instance and of Watch; nil = real time.
func WithClock(c clockwork.Clock) Option {
	return func(o *options) {
		if c != nil && check.Nil(c) {
			o.bad("the clock is %s: want nil itself (real time) or a clock", check.Type(c))
			return
		}
		o.clock = c
	}
}

// WithRand is where jitter comes from, uniform in [0, 1); nil = math/rand/v2.
func WithRand(f func() float64) Option { return func(o *options) { o.rand = f } }
