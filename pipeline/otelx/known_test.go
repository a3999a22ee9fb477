package otelx_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// later is a failure that asks for an hour.
type later struct{}

func (*later) Error() string                     { return "later" }
func (*later) RetryAfter() (time.Duration, bool) { return time.Hour, true }

// gone is a guard whose store failed.
type gone struct{}

func (gone) Acquire(context.Context) (leaf.Permit, error) {
	return leaf.Permit{}, &leaf.StoreError{Op: leaf.OpAdmit, Name: "quota", Err: errors.New("no route"), NotExecuted: true}
}

// Every instrument, its unit, its attributes and its values, after a run whose every call is known.
func TestEveryInstrumentAfterAKnownRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 5, Hold: time.Minute})
		slots := bulkhead.MustNew(bulkhead.Config{Name: "db", MaxConcurrent: 2})
		circuit := breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 7, OpenFor: 10 * time.Second})
		p := pipeline.For("billing").Timeout(timeout.MustNew(timeout.Config{Limit: 3 * time.Second})).
			Retry(steady(func(c *retry.Config) { c.NoBudget, c.Budget = false, tokens })).
			Breaker(circuit).Bulkhead(slots).MustBuild()
		store := pipeline.For("search").With(gone{}).MustBuild()
		defer d.watch(t, p, store)()
		ctx := t.Context()
		call := func(fn func(context.Context) error) { _ = p.Run(ctx, fn) }

		call(fails(0, nil))                                                                   // succeeded, 0 s
		call(func(context.Context) error { <-time.After(40 * time.Millisecond); return nil }) // succeeded, 0.04 s
		call(fails(1, errDown))                                                               // mended: 2 attempts, 0.1 s, 1 token
		call(fails(9, retry.Permanent(errDown)))                                              // failed: 1 attempt
		call(fails(9, &later{}))                                                              // deferred: 1 attempt
		call(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })              // expired: 1 attempt, 3 s
		gonectx, cancel := context.WithCancel(ctx)
		cancel()
		_ = p.Run(gonectx, fails(0, nil)) // cancelled: no attempt
		first, err := slots.Acquire(ctx)
		require.NoError(t, err)
		second, err := slots.Acquire(ctx)
		require.NoError(t, err)
		call(fails(0, nil)) // rejected by the bulkhead
		require.NoError(t, first.Settle(ctx, leaf.Outcome{}))
		call(fails(9, errDown)) // attempts_exhausted: 3 attempts, 0.2 s, 2 tokens
		call(fails(9, errDown)) // opens after 1 attempt (7 in a row): refused by the breaker before the backoff
		call(fails(0, nil))     // rejected by the breaker
		_ = store.Run(ctx, fails(0, nil))

		require.Equal(t, map[string]string{
			"histogram resilience.pipeline.duration s{outcome=succeeded pipeline.name=billing}":                                         "3 calls, 0.140s: 1<=0.005 1<=0.05 1<=0.1",
			"histogram resilience.pipeline.duration s{outcome=failed pipeline.name=billing}":                                            "1 calls, 0.000s: 1<=0.005",
			"histogram resilience.pipeline.duration s{outcome=deferred pipeline.name=billing reason=retry_after_exceeds_maximum_delay}": "1 calls, 0.000s: 1<=0.005",
			"histogram resilience.pipeline.duration s{outcome=expired pipeline.name=billing reason=context_ended}":                      "1 calls, 3.000s: 1<=5",
			"histogram resilience.pipeline.duration s{outcome=cancelled pipeline.name=billing}":                                         "1 calls, 0.000s: 1<=0.005",
			"histogram resilience.pipeline.duration s{outcome=rejected pipeline.name=billing}":                                          "2 calls, 0.000s: 2<=0.005",
			"histogram resilience.pipeline.duration s{outcome=failed pipeline.name=billing reason=attempts_exhausted}":                  "1 calls, 0.200s: 1<=0.25",
			"histogram resilience.pipeline.duration s{outcome=failed pipeline.name=billing reason=refused}":                             "1 calls, 0.000s: 1<=0.005",
			"histogram resilience.pipeline.duration s{outcome=rejected pipeline.name=search}":                                           "1 calls, 0.000s: 1<=0.005",

			"counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=billing}": "3",
			"counter resilience.attempts {attempt}{outcome=failed pipeline.name=billing}":    "8",

			"counter resilience.rejections {rejection}{layer=bulkhead pipeline.name=billing reason=refused}":  "1",
			"counter resilience.rejections {rejection}{layer=breaker pipeline.name=billing reason=refused}":   "2",
			"counter resilience.rejections {rejection}{layer=guard pipeline.name=search reason=store_failed}": "1",

			"gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=bank circuit_breaker.state=closed pipeline.name=billing}":    "0",
			"gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=bank circuit_breaker.state=open pipeline.name=billing}":      "1",
			"gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=bank circuit_breaker.state=half_open pipeline.name=billing}": "0",

			"gauge resilience.bulkhead.in_use {call}{bulkhead.name=db pipeline.name=billing}": "1",
			"gauge resilience.retry_budget.balance {token}{pipeline.name=billing}":            "2",
		}, d.read(t))

		<-time.After(10 * time.Second)
		require.Equal(t, "1", d.read(t)["gauge resilience.circuit_breaker.state {breaker}{circuit_breaker.name=bank circuit_breaker.state=half_open pipeline.name=billing}"],
			"what the next call would find")
		require.NoError(t, second.Settle(ctx, leaf.Outcome{}))
	})
}

// A pipeline whose Builder observes is counted like one that is watched, and shows no guards.
func TestObserveCountsWithoutWatching(t *testing.T) {
	d := newDesk(t)
	p := pipeline.For("p").Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})).Observe(d.Observe).MustBuild()
	require.NoError(t, p.Run(t.Context(), fails(0, nil)))
	got := d.read(t)
	require.Equal(t, "1", got["counter resilience.attempts {attempt}{outcome=succeeded pipeline.name=p}"])
	require.Empty(t, only(got, "gauge"))
}

// A panic of the callback is a failed attempt of a failed call.
func TestAPanicIsCounted(t *testing.T) {
	d := newDesk(t)
	p := pipeline.For("p").MustBuild()
	defer d.watch(t, p)()
	require.Panics(t, func() { _ = p.Run(t.Context(), func(context.Context) error { panic("boom") }) })
	got := d.read(t)
	require.Equal(t, "1", got["counter resilience.attempts {attempt}{outcome=failed pipeline.name=p}"])
	require.Len(t, only(got, "histogram resilience.pipeline.duration s{outcome=failed pipeline.name=p}"), 1)
}

// A refusal and a failure of the guard's store are told apart, also of one layer.
func TestRefusalsAndStoreFailuresAreToldApart(t *testing.T) {
	d := newDesk(t)
	e := pipeline.Event{Kind: pipeline.GuardRejected, Pipeline: "p", Layer: "ratelimit", Err: errDown}
	for range 2 {
		d.Observe(t.Context(), e)
		e.Err = &leaf.StoreError{Op: leaf.OpAdmit}
		d.Observe(t.Context(), e)
	}
	require.Equal(t, map[string]string{
		"counter resilience.rejections {rejection}{layer=ratelimit pipeline.name=p reason=refused}":      "1",
		"counter resilience.rejections {rejection}{layer=ratelimit pipeline.name=p reason=store_failed}": "3",
	}, d.read(t))
}
