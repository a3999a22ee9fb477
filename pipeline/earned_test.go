package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Section 2, retry: Unlimited is bounded by ctx or MaxElapsed, one of which must exist when it begins: a total timeout is ctx's.
func TestATotalTimeoutBoundsUnlimitedRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unlimited := pipeline.For("p").Retry(steady(func(c *retry.Config) { c.MaxAttempts, c.NoBudget = retry.Unlimited, true }))
		runs := 0
		fn := func(context.Context) error { runs++; return errDown }
		var err error
		require.Equal(t, 900*time.Millisecond, in(func() { err = unlimited.Timeout(limitOf(time.Second)).MustBuild().Run(t.Context(), fn) }))
		require.Equal(t, 10, runs)
		require.Equal(t, retry.RetryDelayExceedsDeadline, stopped(t, err).Reason)

		runs = 0
		asked := &rule{acquire: func(context.Context) error { t.Error("nothing may be sent"); return nil }}
		for _, b := range []pipeline.Builder{unlimited, unlimited.AttemptTimeout(limitOf(time.Second))} { // an attempt's limit bounds no call
			_, report, err := pipeline.DoDetailed(t.Context(), b.Breaker(asked).MustBuild(), func(ctx context.Context) (int, error) { return 0, fn(ctx) })
			require.ErrorContains(t, err, "unlimited")
			require.False(t, rejection.Is(err))
			require.Zero(t, runs)
			require.Equal(t, pipeline.Report{Disposition: pipeline.Failed}, report)
		}
	})
}

// Section 5: deposits by first attempts, when they are sent: exactly one each, whatever guards share the reading of the clock.
func TestDepositsThroughAPipeline(t *testing.T) {
	limiter := func(b pipeline.Builder) pipeline.Builder {
		return b.RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1000}))
	}
	slots := func(b pipeline.Builder) pipeline.Builder {
		return b.Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1}))
	}
	for name, layers := range map[string]func(pipeline.Builder) pipeline.Builder{
		"no guard": func(b pipeline.Builder) pipeline.Builder { return b }, "rate limit": limiter, "bulkhead": slots,
		"both":            func(b pipeline.Builder) pipeline.Builder { return slots(limiter(b)) },
		"and a guard":     func(b pipeline.Builder) pipeline.Builder { return slots(limiter(b)).With(&rule{}) },
		"and time's end":  func(b pipeline.Builder) pipeline.Builder { return slots(limiter(b)).Timeout(limitOf(time.Minute)) },
		"breaker outside": func(b pipeline.Builder) pipeline.Builder { return limiter(b).Breaker(&rule{}).BreakerOutsideRetry() },
		"a real breaker": func(b pipeline.Builder) pipeline.Builder {
			return limiter(b).Breaker(breaker.MustNew(breaker.Config{}))
		},
		"an attempt limit": func(b pipeline.Builder) pipeline.Builder { return limiter(b).AttemptTimeout(limitOf(time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				earned := budget.MustNewRatio(budget.RatioConfig{Ratio: 0.5, MinPerSecond: budget.Off})
				b := layers(pipeline.For("p").Retry(steady(func(c *retry.Config) { c.Budget = earned })))
				p := b.MustBuild()
				require.Zero(t, earned.Balance())
				for i := range 20 {
					require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
					require.Equal(t, (i+1)/2, earned.Balance())
				}
				for range 3 { // each earns a half and costs one
					_, err := pipeline.Do(t.Context(), p, fails(1, errDown))
					require.NoError(t, err)
				}
				require.Equal(t, 8, earned.Balance(), "8.5")
				_, err := pipeline.Do(t.Context(), p, fails(9, errDown)) // 9.0, and two retries
				require.Equal(t, retry.AttemptsExhausted, stopped(t, err).Reason)
				require.Equal(t, 7, earned.Balance())

				// A first attempt that is not sent earns nothing: refused by the last guard, or the caller gone before it.
				refused := b.Bulkhead(&rule{acquire: func(context.Context) error { return &no{} }}).MustBuild()
				require.True(t, rejection.Is(refused.Run(t.Context(), func(context.Context) error { return nil })))
				gone, cancel := context.WithCancel(t.Context())
				leaves := b.Bulkhead(&rule{acquire: func(context.Context) error { cancel(); return nil }}).MustBuild()
				require.ErrorIs(t, leaves.Run(gone, func(context.Context) error { return nil }), context.Canceled)
				require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
				require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
				require.Equal(t, 8, earned.Balance(), "one of the two alone would be half a token")
			})
		})
	}
}

// Whatever budget it is, it is told of each first attempt once, and of each retry that is sent.
func TestAnyBudgetIsToldOfEachFirstAttemptOnce(t *testing.T) {
	for _, limited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var j journal
			b := pipeline.For("p").Retry(steady(func(c *retry.Config) { c.Budget = &payer{log: &j} }))
			if limited {
				b = b.RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1000}))
			}
			_, err := pipeline.Do(t.Context(), b.MustBuild(), fails(2, errDown))
			require.NoError(t, err)
			require.Equal(t, []string{"deposit", "reserve", "commit", "reserve", "commit"}, j.lines)
		})
	}
}

// C08, through a pipeline: tokens are paid for retries that are sent, and a burst never overshoots.
func TestTokensComeBackFromRetriesThatAreNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 10})
		r := steady(func(c *retry.Config) { c.Budget, c.Backoff = tokens, retry.Constant(time.Second) })
		p := pipeline.For("p").Retry(r).Breaker(breaker.MustNew(breaker.Config{Consecutive: breaker.Off, MinCalls: 1000})).
			RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 10000})).
			Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1000})).MustBuild()
		runs := 0
		for range 20 { // (a)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			err := p.Run(ctx, func(context.Context) error { runs++; return errDown })
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errDown)
		}
		require.Equal(t, 20, runs)
		require.Equal(t, 10, tokens.Balance())

		// (b)
		began := time.Now()
		results := make(chan error, 100)
		var seen journal
		for range 100 {
			go func() {
				mine, n := errors.New("mine"), 0
				err := p.Run(t.Context(), func(context.Context) error {
					seen.add("")
					if n++; n == 1 {
						return mine
					}
					return nil
				})
				if err == nil {
					assert.Equal(t, time.Second, time.Since(began))
				} else {
					assert.Zero(t, time.Since(began), "no wait")
					assert.ErrorIs(t, err, mine)
				}
				results <- err
			}()
		}
		again := 0
		for range 100 {
			if err := <-results; err == nil {
				again++
			} else {
				require.ErrorIs(t, err, retry.ErrBudgetExhausted)
			}
		}
		require.Equal(t, 10, again)
		require.Len(t, seen.lines, 110)
		require.Zero(t, tokens.Balance())
	})
}
