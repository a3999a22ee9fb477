package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// never trips, whatever fails.
func untripped() *breaker.Breaker {
	return breaker.MustNew(breaker.Config{FailureRate: breaker.Off, FailureCount: 1 << 30, Consecutive: breaker.Off})
}

// When much fails there is least to spare: a refusal allocates its error and nothing else, whoever refuses.
func TestEveryRefusalAllocatesAtMostOnce(t *testing.T) {
	empty := ratelimit.MustNewQuota("q", 1)
	require.True(t, empty.Allow())
	slow := ratelimit.MustNew(ratelimit.Config{Rate: 1, Per: time.Hour})
	require.True(t, slow.Allow())
	cooling := cooldown.MustNew(cooldown.Config{})
	cooling.Hint(t.Context(), time.Minute)
	open := breaker.MustNew(breaker.Config{})
	require.NoError(t, open.ForceOpen(t.Context()))
	b := full(breaker.Window{})
	for name, c := range map[string]struct {
		b    pipeline.Builder
		want error
	}{
		"quota":           {b.RateLimit(empty), ratelimit.ErrLimited},
		"rate limit":      {b.RateLimit(slow), ratelimit.ErrLimited},
		"cooldown":        {b.Cooldown(cooling), cooldown.ErrCooling},
		"breaker outside": {b.Breaker(open).BreakerOutsideRetry(), breaker.ErrOpen},
	} {
		require.LessOrEqual(t, allocs(t, c.b.MustBuild(), t.Context(), c.want), 1.0, name)
	}
}

func TestAFailureThatIsNotRetriedAllocatesNothing(t *testing.T) {
	for name, b := range map[string]pipeline.Builder{
		"no retry": pipeline.For("p").Breaker(untripped()),
		"stopped":  full(breaker.Window{}).Breaker(untripped()).Retry(retry.MustNew(retry.Config{StopIf: func(error) bool { return true }})),
	} {
		p := b.MustBuild()
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			_, err := pipeline.Do(t.Context(), p, func(context.Context) (int, error) { return 0, errDown })
			if err != errDown {
				t.Fatal(err)
			}
		}), name)
	}
}

// A retry costs its reservation of the retry budget, and nothing without one; the last failure its *retry.Error.
func TestARetryAllocatesItsReservationAlone(t *testing.T) {
	for name, c := range map[string]struct {
		cfg      retry.Config
		failures int
		most     float64
	}{
		"no budget, mended":      {retry.Config{NoBudget: true}, 2, 0},
		"budget, mended":         {retry.Config{}, 2, 2},
		"no budget, given up on": {retry.Config{NoBudget: true}, 3, 1},
	} {
		c.cfg.Backoff = retry.Immediate
		p := full(breaker.Window{}).Breaker(untripped()).Retry(retry.MustNew(c.cfg)).MustBuild()
		got := testing.AllocsPerRun(40, // the default budget's floor is 100 retries
			func() {
				n := 0
				_, err := pipeline.Do(t.Context(), p, func(context.Context) (int, error) {
					if n++; n <= c.failures {
						return 0, errDown
					}
					return n, nil
				})
				if (err != nil) != (c.failures == 3) || n != 3 {
					t.Fatal(n, err)
				}
			})
		require.LessOrEqual(t, got, c.most, name)
		t.Log(name, got)
	}
}
