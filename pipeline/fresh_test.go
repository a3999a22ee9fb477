package pipeline_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// The guards of an attempt share a reading of the clock. Whoever waits makes it stale: a limiter that went by an old one
// would see no time pass, and then see it twice.

// getIn is how many of n calls that begin at once get through, all told.
func getIn(n int, p *pipeline.Pipeline, meanwhile func()) int {
	var ok atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if p.Run(context.Background(), func(context.Context) error { return nil }) == nil {
				ok.Add(1)
			}
		})
	}
	synctest.Wait()
	meanwhile()
	wg.Wait()
	return int(ok.Load())
}

func TestStaleReadingAdmitsNobodyTwice(t *testing.T) {
	for name, gate := range map[string]func() (leaf.Guard, func()){
		"a guard of the user's": func() (leaf.Guard, func()) {
			open := make(chan struct{})
			return &rule{acquire: func(context.Context) error { <-open; return nil }}, func() { close(open) }
		},
		"a full bulkhead": func() (leaf.Guard, func()) {
			b := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 100, MaxWait: time.Minute})
			held := make([]leaf.Permit, 100)
			for i := range held {
				held[i], _ = b.TryAcquire(context.Background())
			}
			return b, func() {
				for i := range held {
					_ = held[i].Settle(context.Background(), leaf.Outcome{})
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate, open := gate()
				limiter := ratelimit.MustNew(ratelimit.Config{Rate: 10, Burst: 10})
				p := pipeline.For("p").Cooldown(gate).RateLimit(limiter).MustBuild()
				n := getIn(100, p, func() {
					<-time.After(time.Second)
					open()
				})
				require.Equal(t, 10, n, "the burst, in one instant")
			})
		})
	}
}

// Each of the 20 waits for its own token of the first limiter, 50 ms after the one before.
func TestStaleReadingOfOneLimiterForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := ratelimit.MustNew(ratelimit.Config{Rate: 20, Burst: 100, MaxWait: time.Minute})
		second := ratelimit.MustNew(ratelimit.Config{Rate: 1, Burst: 5})
		require.NoError(t, first.AllowN(100))
		go func() { _ = first.Wait(context.Background(), 100) }()
		synctest.Wait()
		p := pipeline.For("p").RateLimit(first).With(second).MustBuild()
		require.LessOrEqual(t, getIn(20, p, func() {}), 6, "5 and one per second, within a second")
	})
}

// queued is a budget of 1 token per first attempt, kept for 1 s, behind a bulkhead whose only slot is taken for as long
// as hold says.
func queued(hold time.Duration) (*budget.Ratio, pipeline.Builder) {
	b := budget.MustNewRatio(budget.RatioConfig{Ratio: 1, MinPerSecond: budget.Off, TTL: time.Second})
	slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1, MaxWait: time.Minute})
	taken, _ := slots.TryAcquire(context.Background())
	time.AfterFunc(hold, func() { _ = taken.Settle(context.Background(), leaf.Outcome{}) })
	return b, pipeline.For("p").Bulkhead(slots).Retry(retry.MustNew(retry.Config{Budget: b, Backoff: retry.Immediate}))
}

// A first attempt that had to wait deposits when it is sent, not when the call began.
func TestStaleReadingLosesNoDeposit(t *testing.T) {
	for _, limited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			_, b := queued(3 * time.Second)
			if limited {
				b = b.RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1000}))
			}
			runs := 0
			require.Error(t, b.MustBuild().Run(t.Context(), func(context.Context) error { runs++; return errDown }))
			require.Equal(t, 2, runs, "one deposit pays for one retry")
		})
	}
}

// A bulkhead with a free slot makes no stale reading fresh, and no reading where there was none.
func TestFreeBulkheadFreshensNoReading(t *testing.T) {
	for _, limited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			earned := budget.MustNewRatio(budget.RatioConfig{Ratio: 1, MinPerSecond: budget.Off, TTL: time.Second})
			waits := &rule{acquire: func(context.Context) error { <-time.After(3 * time.Second); return nil }}
			b := pipeline.For("p").With(waits).Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})).
				Retry(retry.MustNew(retry.Config{Budget: earned, Backoff: retry.Immediate}))
			if limited {
				b = b.RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1000}))
			}
			runs := 0
			require.Error(t, b.MustBuild().Run(t.Context(), func(context.Context) error { runs++; return errDown }))
			require.Equal(t, 2, runs, "one deposit pays for one retry")
		})
	}
}

func TestStaleReadingWipesNoDeposits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		earned, b := queued(2050 * time.Millisecond)
		p := b.RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1000})).MustBuild()
		done := make(chan error)
		go func() { done <- p.Run(context.Background(), func(context.Context) error { return nil }) }()
		<-time.After(2010 * time.Millisecond)
		for range 50 {
			earned.Deposit()
		}
		before := earned.Balance()
		require.NoError(t, <-done)
		require.Equal(t, before+1, earned.Balance())
	})
}

// The call's first reading is the attempt's too, unless somebody may have waited in between.
func TestStaleReadingOfTheCallsBeginning(t *testing.T) {
	wait := func(context.Context) error { <-time.After(3 * time.Second); return nil }
	for name, b := range map[string]pipeline.Builder{
		"an observer that takes its time": pipeline.For("p").Observe(func(ctx context.Context, e pipeline.Event) {
			if e.Kind == pipeline.CallStarted {
				_ = wait(ctx)
			}
		}),
		"a guard outside that waits": pipeline.For("p").Retry(steady()).Breaker(&rule{acquire: wait}).BreakerOutsideRetry(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := ratelimit.MustNew(ratelimit.Config{Rate: 1, Burst: 1})
				p := b.RateLimit(limiter).AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 2 * time.Second})).MustBuild()
				require.NoError(t, limiter.AllowN(1)) // another is there 1 s later
				require.NoError(t, p.Run(t.Context(), func(ctx context.Context) error {
					<-time.After(time.Second)
					return ctx.Err()
				}), "neither is the token missing, nor has the attempt's time run since the call began")
			})
		})
	}
}

// The reading at the attempt's end is the breaker's too, unless a guard inside took its time to settle.
func TestStaleReadingOfTheAttemptsEnd(t *testing.T) {
	for name, c := range map[string]struct{ settles, kept time.Duration }{
		"at once": {0, 9 * time.Second}, "after the window": {20 * time.Second, 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.MustNew(breaker.Config{Window: breaker.Time(10 * time.Second)})
				inside := &rule{settle: func(leaf.Outcome) error { <-time.After(c.settles); return nil }}
				p := pipeline.For("p").Breaker(b).With(inside).
					AttemptTimeout(timeout.MustNew(timeout.Config{Limit: time.Hour})).MustBuild()
				ok := func(context.Context) error { return nil }
				require.NoError(t, p.Run(t.Context(), ok)) // from now on successes pass without the lock
				require.NoError(t, p.Run(t.Context(), ok))
				<-time.After(c.kept)
				require.Positive(t, b.Snapshot().Calls, "counted when it was settled, so that the window still holds it")
			})
		})
	}
}

// A guard that refuses without having waited leaves a reading that a backoff makes stale.
func TestStaleReadingOfARefusedTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := cooldown.MustNew(cooldown.Config{})
		cold.Hint(t.Context(), 3*time.Second)
		p := pipeline.For("p").Retry(steady()).RateLimit(cold).RetryOnRateLimited().
			AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 2 * time.Second})).MustBuild()
		runs := 0
		require.NoError(t, p.Run(t.Context(), func(ctx context.Context) error {
			runs++
			<-time.After(time.Second)
			return ctx.Err()
		}))
		require.Equal(t, 1, runs, "the first has its 2 s from when it began")
	})
}

// A breaker's Settle may tell its hook, which may take its time.
func TestStaleReadingAfterAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settle := func(b *breaker.Breaker, err error) {
			p, refused := b.Acquire(t.Context())
			require.NoError(t, refused)
			_ = p.Settle(t.Context(), leaf.Outcome{Err: err})
		}
		outer := breaker.MustNew(breaker.Config{})
		inner := breaker.MustNew(breaker.Config{Consecutive: 1, OpenFor: time.Second, OnChange: func(c breaker.Change) {
			if c.To == breaker.Closed {
				<-time.After(30 * time.Second)
			}
		}})
		p := pipeline.For("p").Breaker(outer).With(inner).AttemptTimeout(timeout.MustNew(timeout.Config{Limit: time.Minute})).MustBuild()
		settle(inner, errDown)
		<-time.After(time.Second)
		settle(outer, nil) // its bucket begins now
		require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
		require.Equal(t, 1, outer.Snapshot().Calls, "the first has left the window; the call's own has just been told")
	})
}
