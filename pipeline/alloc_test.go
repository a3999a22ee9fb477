package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// full is retry, breaker, rate limit and bulkhead, none of which is near its limit.
func full(w breaker.Window) pipeline.Builder {
	return pipeline.For("full").
		Retry(retry.MustNew(retry.Config{})).
		Breaker(breaker.MustNew(breaker.Config{Name: "b", Window: w})).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Name: "r", Rate: 1_000_000, Burst: 1_000_000_000})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "h", MaxConcurrent: 1000}))
}

func allocs(t *testing.T, p *pipeline.Pipeline, ctx context.Context, fail error) float64 {
	t.Helper()
	captured := 0
	got := testing.AllocsPerRun(1000, func() {
		v, err := pipeline.Do(ctx, p, func(context.Context) (int, error) {
			captured++ // a closure that captures
			return captured, nil
		})
		if (err != nil) != (fail != nil) || fail != nil && !errors.Is(err, fail) || err == nil && v != captured {
			t.Fatal(v, err)
		}
	})
	return got
}

func TestSuccessAllocatesNothing(t *testing.T) {
	for name, w := range map[string]breaker.Window{
		"count": breaker.Count(100), "count within": breaker.Count(100).Within(time.Minute), "time": breaker.Time(10 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			require.Zero(t, allocs(t, full(w).MustBuild(), t.Context(), nil))
			require.Zero(t, allocs(t, full(w).BreakerOutsideRetry().MustBuild(), t.Context(), nil), "outside")
		})
	}
}

func TestUntouchedTimeoutAllocatesOnce(t *testing.T) {
	attempt := timeout.MustNew(timeout.Config{Limit: time.Minute})
	total := timeout.MustNew(timeout.Config{Limit: time.Hour})
	b := full(breaker.Window{})
	require.EqualValues(t, 1, allocs(t, b.AttemptTimeout(attempt).MustBuild(), t.Context(), nil), "attempt")
	require.EqualValues(t, 1, allocs(t, b.Timeout(total).MustBuild(), t.Context(), nil), "total")
	require.EqualValues(t, 2, allocs(t, b.Timeout(total).AttemptTimeout(attempt).MustBuild(), t.Context(), nil), "both")
}

func TestRefusalAllocatesAtMostOnce(t *testing.T) {
	open := breaker.MustNew(breaker.Config{OpenFor: time.Hour, Consecutive: 1})
	p := full(breaker.Window{}).Breaker(open).MustBuild()
	_ = p.Run(t.Context(), func(context.Context) error { return errors.New("down") })
	require.LessOrEqual(t, allocs(t, p, t.Context(), breaker.ErrOpen), 1.0, "open breaker")

	slot := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
	held, err := slot.Acquire(t.Context())
	require.NoError(t, err)
	p = full(breaker.Window{}).Bulkhead(slot).MustBuild()
	require.LessOrEqual(t, allocs(t, p, t.Context(), bulkhead.ErrFull), 1.0, "full bulkhead")
	require.NoError(t, held.Settle(t.Context(), leaf.Outcome{}))
}
