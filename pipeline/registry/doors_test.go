package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A second door without a second engine: the same objects go to httpx and to Wrap, and one switch turns all of it off at once.
func TestTheSameObjectsGoToHTTPXAndWrap(t *testing.T) {
	doc := "resilience: {enabled: %v, bulkhead: {db: {max-concurrent: 1}}, pipelines: {p: {bulkhead: db}}}"
	r := loaded(t, fmt.Sprintf(doc, true))
	client := http.Client{Transport: httpx.NewTransport(r.MustPipeline("p"), roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))}
	wrapped := pipeline.Wrap(r.MustPipeline("p"), func(context.Context) (int, error) { return 42, nil })
	both := func() (overHTTP, inProcess error) {
		resp, overHTTP := client.Get("http://x")
		if overHTTP == nil {
			overHTTP = resp.Body.Close()
		}
		_, inProcess = wrapped(bg)
		return overHTTP, inProcess
	}
	permit, err := r.MustBulkhead("db").TryAcquire(bg)
	require.NoError(t, err)
	one, other := both()
	assert.ErrorIs(t, one, bulkhead.ErrFull)
	assert.ErrorIs(t, other, bulkhead.ErrFull)
	reload(t, r, fmt.Sprintf(doc, false))
	one, other = both()
	assert.NoError(t, one)
	assert.NoError(t, other)
	reload(t, r, fmt.Sprintf(doc, true))
	require.NoError(t, permit.Settle(bg, leaf.Outcome{}))
	one, other = both()
	assert.NoError(t, one)
	assert.NoError(t, other)
}

func TestBuiltInMatchers(t *testing.T) {
	limit := &timeout.Error{Name: "x", Limit: time.Second}
	for _, c := range []struct {
		err  error
		want string // the matchers that say yes
	}{
		{errDown, "all"},
		{fmt.Errorf("w: %w", limit), "all timeout context"}, // it matches context.DeadlineExceeded
		{context.DeadlineExceeded, "all timeout context"},
		{os.ErrDeadlineExceeded, "all timeout"},
		{&net.DNSError{IsTimeout: true}, "all timeout"},
		{&net.DNSError{}, "all"},
		{context.Canceled, "all context"},
	} {
		var yes []string
		for _, name := range []string{"all", "timeout", "context"} {
			if builtin[name](c.err) {
				yes = append(yes, name)
			}
		}
		assert.Equal(t, c.want, strings.Join(yes, " "), "%v", c.err)
	}
	r := loaded(t, "resilience: {retry: {a: {retry-on: all, stop-on: [timeout, unavailable]}}, circuit-breaker: {a: {record-on: [timeout]}, b: {record-on: [context, all]}}}", unavailable())
	cfg := r.MustRetry("a").Config()
	assert.True(t, cfg.RetryIf(errors.New("other")))
	assert.True(t, cfg.StopIf(errDown))
	assert.False(t, cfg.StopIf(errors.New("other")))
	ignore := r.breakers.now["a"].item.Config().Ignore
	assert.False(t, ignore(os.ErrDeadlineExceeded))
	assert.True(t, ignore(errDown))
	assert.Nil(t, r.breakers.now["b"].item.Config().Ignore, "all is the default")
}

// Seed 000: what record-on does not name leaves the breaker's state as it was, and gives a probe's permit back.
func TestWhatRecordOnDoesNotNameLeavesTheCircuitAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := loaded(t, "resilience: {circuit-breaker: {a: {record-on: [timeout], consecutive: 2, wait-duration-in-open: 10s}}}")
		b := r.MustBreaker("a")
		call := func(err error) {
			_, got := leaf.Do(t.Context(), b, func(context.Context) (int, error) { return 0, err })
			assert.Equal(t, err, got)
		}
		call(os.ErrDeadlineExceeded)
		call(errDown)
		assert.Equal(t, 1, b.Snapshot().Calls)
		call(os.ErrDeadlineExceeded)
		assert.Equal(t, breaker.Open, b.State(), "two in a row: what is not recorded is no success between them")
		<-time.After(10 * time.Second)
		call(errDown)
		assert.Equal(t, breaker.HalfOpen, b.State())
		assert.Zero(t, b.Snapshot().Probes)
		call(nil)
		assert.Equal(t, breaker.Closed, b.State())
	})
}

func TestFailureThresholdIsIgnoredWhereARateIsSet(t *testing.T) {
	r := loaded(t, "resilience: {circuit-breaker: {a: {failure-threshold: 500, failure-rate-threshold: 0.2, window-size: 100}, b: {failure-threshold: 7}, c: {failure-threshold: 7, failure-rate-threshold: off}}}")
	of := func(name string) (int, float64) {
		cfg := r.breakers.now[name].item.Config()
		return cfg.FailureCount, cfg.FailureRate
	}
	for name, want := range map[string]struct {
		count int
		rate  float64
	}{"a": {0, 0.2}, "b": {7, 0.5}, "c": {7, -1}} {
		count, rate := of(name)
		assert.Equal(t, want.count, count, name)
		assert.InDelta(t, want.rate, rate, 0, name)
	}
}

// 0.3 per second is 3 in 10 s, exactly; the bucket's default size is what a whole rate would be.
func TestRefillRatesAreExact(t *testing.T) {
	for text, want := range map[string]struct {
		rate, burst int
		per         time.Duration
	}{
		"refill-rate: 10.0":                 {10, 10, time.Second},
		"refill-rate: 0.3":                  {3, 1, 10 * time.Second},
		"refill-rate: 2.5":                  {5, 2, 2 * time.Second},
		"refill-rate: 100, per: 1m":         {100, 100, time.Minute},
		"refill-rate: 0.1, max-tokens: 5":   {1, 5, 10 * time.Second},
		"refill-rate: 1000000":              {1000000, 1000000, time.Second},
		"refill-rate: 1, per: P1D":          {1, 1, day},
		"refill-rate: 0.000001, timeout: 0": {1, 1, 1_000_000 * time.Second},
	} {
		cfg := loaded(t, "resilience: {rate-limiter: {a: {"+text+"}}}").limits.now["a"].item.Config()
		assert.Equal(t, want.rate, cfg.Rate, text)
		assert.Equal(t, want.per, cfg.Per, text)
		assert.Equal(t, want.burst, cfg.Burst, text)
	}
	assert.Equal(t, []string{"resilience.rate-limiter.a.refill-rate is 0.0000000001: want a rate of fewer digits"},
		problems(t, "resilience: {rate-limiter: {a: {refill-rate: 0.0000000001}}}"))
}

func TestJitterForms(t *testing.T) {
	r := loaded(t, "resilience: {retry: {a: {jitter: full}, b: {jitter: equal}, c: {jitter: none}, d: {jitter: 25%}, e: {jitter: 100ms}, f: {jitter: 0.5}, g: {jitter: 0}}}")
	for name, want := range map[string]string{"a": "full", "b": "equal", "c": "none", "d": "25%", "e": "100ms", "f": "500ms", "g": "0s"} {
		assert.Equal(t, want, r.retries.now[name].spec.jitter, name)
	}
}

// The commit undoes itself should an Update fail that the trial did not find.
func TestACommitThatFailsIsUndone(t *testing.T) {
	r := loaded(t, "resilience: {bulkhead: {a: {max-concurrent: 1}}, cooldown: {a: {max: 1s}}, pipelines: {p: {bulkhead: a}}}")
	before := r.Describe()
	broken := *r.cooldowns.kind
	broken.update = func(e *env, c cooling, s *cooldownSpec) error {
		if s.cfg.Max == time.Minute {
			return errDown
		}
		return cooldownKind.update(e, c, s)
	}
	r.cooldowns.kind = &broken
	err := r.Reload(strings.NewReader("resilience: {enabled: false, bulkhead: {a: {max-concurrent: 5}, b: {max-concurrent: 1}}, cooldown: {a: {max: 1m}}, pipelines: {p: {}}}"))
	assert.EqualError(t, err, "resilience.cooldown.a: down")
	assert.Equal(t, before, r.Describe())
	assert.Error(t, second(r.Bulkhead("b")))
	assert.Len(t, r.bulkheads.ever, 1)
}

func TestServedDefaultsAreBounded(t *testing.T) {
	r := loaded(t, "")
	for i := range mostNames {
		require.NoError(t, second(r.Retry(fmt.Sprint(i))))
	}
	assert.EqualError(t, second(r.Retry("more")), "no resilience [retry] instance named [more]: 1000 names are served with defaults, and no more")
	assert.ErrorContains(t, second(r.Retry("")), "no resilience [retry] instance named []")
}
