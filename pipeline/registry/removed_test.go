package registry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
)

// A pipeline that the document no longer has must not keep the document from changing what it was made of.
func TestARemovedPipelineDoesNotBlockAReload(t *testing.T) {
	r := loaded(t, "resilience: {time-limiter: {t: {timeout: 5s}}, pipelines: {p: {timeout: t, attempt-timeout: 2s}}}")
	p := r.MustPipeline("p")
	reload(t, r, "resilience: {time-limiter: {t: {timeout: 1s}}}")
	assert.Equal(t, time.Second, r.MustTimeout("t").Config().Limit)
	require.NoError(t, p.Run(bg, func(ctx context.Context) error {
		deadline, ok := ctx.Deadline()
		assert.True(t, ok)
		assert.LessOrEqual(t, time.Until(deadline), time.Second, "it goes by what its parts have become")
		return nil
	}))
	reload(t, r, "resilience: {enabled: false, time-limiter: {t: {timeout: 1s}}}")
	assert.Equal(t, "p: fn", p.String())
	reload(t, r, "resilience: {time-limiter: {t: {timeout: 1s}}}")
	assert.Equal(t, `p: timeout "t" 1s > attempt-timeout "p" 2s > fn`, p.String(), "and so it does after it was off")
}

// What comes back after a removal has its history, not a fresh start.
func TestANameThatComesBackHasItsHistory(t *testing.T) {
	clk := clockwork.NewFakeClock()
	doc := "resilience: {circuit-breaker: {a: {consecutive: 1, wait-duration-in-open: 10s}, other: {}}, rate-limiter: {a: {refill-rate: 1, max-tokens: 5}}}"
	r := loaded(t, doc, WithClock(clk))
	c, l := r.MustBreaker("a"), r.MustRateLimit("a")
	permit, err := c.Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, permit.Settle(bg, failure))
	require.NoError(t, l.Wait(bg, 5))
	reload(t, r, "resilience: {circuit-breaker: {other: {}}}")
	assert.EqualError(t, second(r.Breaker("a")), "no resilience [circuit-breaker] instance named [a]; available: other")
	clk.Advance(2 * time.Second)
	reload(t, r, doc)
	assert.Same(t, c, r.MustBreaker("a"))
	assert.Equal(t, breaker.Open, r.MustBreaker("a").State())
	assert.Equal(t, 8*time.Second, c.Snapshot().Wait)
	assert.InDelta(t, 2, r.limits.now["a"].item.Inspect().Gauges[0].Value, 1e-6)
}

// A name that is served with defaults stays served, and is shown, over a reload; the bound is on names, not on asking.
func TestAReloadKeepsWhatIsServedWithDefaults(t *testing.T) {
	r := loaded(t, "")
	first := r.MustRetry("0")
	for i := range mostNames {
		require.NoError(t, second(r.Retry(fmt.Sprint(i))))
	}
	before := r.Describe()
	reload(t, r, "resilience: {}")
	assert.Equal(t, before, r.Describe())
	assert.Same(t, first, r.MustRetry("0"))
	reload(t, r, "resilience: {retry: {x: {}}}")
	assert.Error(t, second(r.Retry("0")))
	reload(t, r, "resilience: {bulkhead: {b: {max-concurrent: 1}}}")
	assert.Same(t, first, r.MustRetry("0"), "of 1001 that there ever were")
	assert.EqualError(t, second(r.Retry("a new\nname")), `no resilience [retry] instance named ["a new\nname"]: 1000 names are served with defaults, and no more`)
}

// A commit that fails is undone in the order in which its parts depend on each other.
func TestAnUndoneCommitGivesARetryItsBudgetBack(t *testing.T) {
	r := loaded(t, "resilience: {retry-budget: {b: {capacity: 5}}, retry: {a: {budget: b}}, cooldown: {c: {max: 1s}}, time-limiter: {t: {timeout: 5s}}, pipelines: {p: {timeout: t, retry: a, attempt-timeout: 2s}}}")
	before, nesting := r.Describe(), r.MustPipeline("p").String()
	broken := *r.cooldowns.kind
	broken.update = func(*env, cooling, *cooldownSpec) error { return errDown }
	r.cooldowns.kind = &broken
	require.ErrorIs(t, r.Reload(strings.NewReader("resilience: {retry: {a: {}}, cooldown: {c: {max: 1m}}, time-limiter: {t: {timeout: 1s}}, pipelines: {p: {}}}")), errDown)
	assert.Equal(t, before, r.Describe())
	assert.Same(t, r.MustRetryBudget("b"), r.MustRetry("a").Config().Budget)
	assert.Equal(t, nesting, r.MustPipeline("p").String())
}

// Whoever is admitted keeps what it was admitted by, whatever a reload makes of it meanwhile.
func TestAReloadThatChangesWhatACallInFlightHolds(t *testing.T) {
	doc := "resilience: {bulkhead: {a: {max-concurrent: 1}, b: {max-concurrent: 1}}, pipelines: {p: {bulkhead: %s, timeout: 1h}}}"
	r := loaded(t, fmt.Sprintf(doc, "a"))
	p, a, b := r.MustPipeline("p"), r.MustBulkhead("a").(*bulkhead.Bulkhead), r.MustBulkhead("b").(*bulkhead.Bulkhead)
	require.NoError(t, p.Run(bg, func(context.Context) error {
		reload(t, r, fmt.Sprintf(doc, "b"))
		assert.Equal(t, []int{1, 0}, []int{a.InUse(), b.InUse()})
		require.NoError(t, p.Run(bg, func(context.Context) error {
			assert.Equal(t, []int{1, 1}, []int{a.InUse(), b.InUse()})
			reload(t, r, "resilience: {enabled: false}")
			return p.Run(bg, func(context.Context) error {
				assert.Equal(t, []int{1, 1}, []int{a.InUse(), b.InUse()}, "a plain call")
				return nil
			})
		}))
		assert.Equal(t, []int{1, 0}, []int{a.InUse(), b.InUse()}, "settled where it was admitted")
		return nil
	}))
	assert.Equal(t, []int{0, 0}, []int{a.InUse(), b.InUse()})
}
