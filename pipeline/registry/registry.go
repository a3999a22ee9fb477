package registry

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/toggle"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"go.yaml.in/yaml/v3"
)

// Registry holds one instance per name for its life: the same pointer for everyone, also over a [Registry.Reload]. It is safe
// for concurrent use. Make one with [LoadYAML], [LoadJSON] or [LoadMap], and end it with Close.
type Registry struct {
	options

	reloading sync.Mutex // one Reload at a time, and its OnReload hook

	mu           sync.RWMutex // guards what follows
	closed       bool
	text         *digest       // of the document in force; nil = it was no text
	on           toggle.Switch // what all pipelines go by; turned under mu
	store        *store
	retries      *shelf[retrySpec, *retry.Retry]
	budgets      *shelf[budgetSpec, anyBudget]
	breakers     *shelf[breakerSpec, circuit]
	limits       *shelf[limitSpec, limiter]
	bulkheads    *shelf[slotsSpec, slots]
	timeouts     *shelf[timeoutSpec, *timeout.Timeout]
	cooldowns    *shelf[cooldownSpec, cooling]
	pipelines    map[string]*handle
	everPipeline map[string]*handle

	life    context.Context // of what Watch started
	stop    context.CancelFunc
	watches sync.WaitGroup

	closing  sync.Once
	closeErr error
}

var errClosed = errors.New("registry: it is closed")

// LoadYAML makes a registry of a YAML document. Its error names everything that is wrong, by path and as it was written; after 100
// problems it counts the rest. An empty document is legal, and an empty registry, which still serves retries and circuit
// breakers with defaults; one that is not empty must have the key resilience.
func LoadYAML(r io.Reader, opts ...Option) (*Registry, error) { return loadText(r, parseYAML, opts) }

// LoadJSON makes a registry of a JSON document, as LoadYAML does, an empty one included.
func LoadJSON(r io.Reader, opts ...Option) (*Registry, error) { return loadText(r, parseJSON, opts) }

// LoadMap makes a registry of Go values, as LoadYAML does: maps with string keys, slices, strings, booleans, numbers (which are
// seconds where a duration is wanted), time.Duration and nil. A nil or empty map is an empty document.
func LoadMap(m map[string]any, opts ...Option) (*Registry, error) {
	return load(func() (*yaml.Node, *digest, error) {
		node, err := parseMap(m)
		return node, nil, err
	}, opts)
}

func loadText(from io.Reader, parse func([]byte) (*yaml.Node, error), opts []Option) (*Registry, error) {
	return load(func() (*yaml.Node, *digest, error) {
		text, err := read(from)
		if err != nil {
			return nil, nil, err
		}
		node, err := parse(text)
		return node, digestOf(text), err
	}, opts)
}

func load(parse func() (*yaml.Node, *digest, error), opts []Option) (*Registry, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	node, text, err := parse()
	if err != nil {
		return nil, err
	}
	r := &Registry{
		options: o, on: toggle.New(true), everPipeline: map[string]*handle{},
		retries: newShelf(retryKind), budgets: newShelf(budgetKind), breakers: newShelf(breakerKind), limits: newShelf(limitKind),
		bulkheads: newShelf(slotsKind), timeouts: newShelf(timeoutKind), cooldowns: newShelf(cooldownKind),
	}
	r.life, r.stop = context.WithCancel(context.Background())
	if err := r.apply(node, text); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// env is what an instance that is made now is made with; under mu.
func (r *Registry) env() *env {
	return &env{&r.options, r.store, func(name string) anyBudget {
		if here := r.budgets.now[name]; here != nil {
			return here.item
		}
		return anyBudget{}
	}}
}

// find is the instance of a name. One that is served with defaults is made on the way.
func find[S, T any](r *Registry, from func(*Registry) *shelf[S, T], name string) (T, error) {
	r.mu.RLock()
	item, ok, err := from(r).get(name)
	r.mu.RUnlock()
	if ok || err != nil {
		return item, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return from(r).serve(r.env(), rootKey, name)
}

func must[T any](item T, err error) T {
	if err != nil {
		panic(err)
	}
	return item
}

// Pipeline is the pipeline of that name; its error lists what there is.
func (r *Registry) Pipeline(name string) (*pipeline.Pipeline, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if h := r.pipelines[name]; h != nil {
		return h.pipeline, nil
	}
	return nil, missing("pipelines", shown(name), slices.Collect(maps.Keys(r.pipelines)))
}

// MustPipeline is Pipeline that panics instead.
func (r *Registry) MustPipeline(name string) *pipeline.Pipeline { return must(r.Pipeline(name)) }

// Retry is the retry of that name. Where the document has none at all, any name is served with the defaults.
func (r *Registry) Retry(name string) (*retry.Retry, error) {
	return find(r, func(r *Registry) *shelf[retrySpec, *retry.Retry] { return r.retries }, name)
}

// MustRetry is Retry that panics instead.
func (r *Registry) MustRetry(name string) *retry.Retry { return must(r.Retry(name)) }

// Breaker is the circuit breaker of that name. Where the document has none at all, any name is served with the defaults.
func (r *Registry) Breaker(name string) (breaker.Circuit, error) {
	c, err := find(r, func(r *Registry) *shelf[breakerSpec, circuit] { return r.breakers }, name)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// MustBreaker is Breaker that panics instead.
func (r *Registry) MustBreaker(name string) breaker.Circuit { return must(r.Breaker(name)) }

// RateLimit is the rate limiter of that name.
func (r *Registry) RateLimit(name string) (ratelimit.Limit, error) {
	l, err := find(r, func(r *Registry) *shelf[limitSpec, limiter] { return r.limits }, name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// MustRateLimit is RateLimit that panics instead.
func (r *Registry) MustRateLimit(name string) ratelimit.Limit { return must(r.RateLimit(name)) }

// Bulkhead is the bulkhead of that name.
func (r *Registry) Bulkhead(name string) (bulkhead.Slots, error) {
	b, err := find(r, func(r *Registry) *shelf[slotsSpec, slots] { return r.bulkheads }, name)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// MustBulkhead is Bulkhead that panics instead.
func (r *Registry) MustBulkhead(name string) bulkhead.Slots { return must(r.Bulkhead(name)) }

// Timeout is the time limiter of that name.
func (r *Registry) Timeout(name string) (*timeout.Timeout, error) {
	return find(r, func(r *Registry) *shelf[timeoutSpec, *timeout.Timeout] { return r.timeouts }, name)
}

// MustTimeout is Timeout that panics instead.
func (r *Registry) MustTimeout(name string) *timeout.Timeout { return must(r.Timeout(name)) }

// Cooldown is the cooldown of that name.
func (r *Registry) Cooldown(name string) (Cooling, error) {
	c, err := find(r, func(r *Registry) *shelf[cooldownSpec, cooling] { return r.cooldowns }, name)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// MustCooldown is Cooldown that panics instead.
func (r *Registry) MustCooldown(name string) Cooling { return must(r.Cooldown(name)) }

// RetryBudget is the retry budget of that name: a *budget.Ratio, or a *budget.Tokens where it has a capacity.
func (r *Registry) RetryBudget(name string) (budget.Retry, error) {
	b, err := find(r, func(r *Registry) *shelf[budgetSpec, anyBudget] { return r.budgets }, name)
	if err != nil {
		return nil, err
	}
	return b.Retry, nil
}

// MustRetryBudget is RetryBudget that panics instead.
func (r *Registry) MustRetryBudget(name string) budget.Retry { return must(r.RetryBudget(name)) }

// closeWithin is how long Close waits for what shared guards still have to tell the store.
const closeWithin = 5 * time.Second

// Close ends what the registry started: every Watch, the shared guards (which tell the store what it has not heard, 5 s at
// most) and its own client. The local instances go on working, and a shared guard then treats the store as one that cannot be
// asked. It may be called again, waits then for the first call and returns its error, and must not be called by a hook of the
// registry's.
func (r *Registry) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.watches.Wait()
	r.closing.Do(func() { r.closeErr = r.end() })
	return r.closeErr
}

// end closes what is shared, without the lock: meanwhile everybody else goes on using the registry.
func (r *Registry) end() error {
	r.mu.RLock()
	ends := slices.Concat(r.breakers.ends(), r.limits.ends(), r.bulkheads.ends(), r.cooldowns.ends())
	r.mu.RUnlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	errs := make([]error, len(ends))
	var all sync.WaitGroup
	for i, end := range ends { // all at once: each may have to wait for the store
		all.Go(func() { errs[i] = end(ctx) })
	}
	all.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(errors.Join(errs...), r.store.end())
}
