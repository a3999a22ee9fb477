package pipeline_test

import (
	"context"
	"errors"
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
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fiveMethods is a clock that has Now, Since, Until, NewTimer and AfterFunc, and counts; it dies of every other method. It goes
// by real time, which a bubble makes virtual.
type fiveMethods struct {
	clockwork.Clock // nil: what is not below panics
	asked, timers   atomic.Int64
	live            atomic.Int64 // timers neither fired nor stopped
}

func (c *fiveMethods) Now() time.Time                  { c.asked.Add(1); return time.Now() }
func (c *fiveMethods) Since(t time.Time) time.Duration { c.asked.Add(1); return time.Since(t) }
func (c *fiveMethods) Until(t time.Time) time.Duration { c.asked.Add(1); return time.Until(t) }
func (c *fiveMethods) NewTimer(d time.Duration) clockwork.Timer {
	fired := make(chan time.Time, 1)
	return &counted{c.started(d, func() { fired <- time.Now() }), fired}
}

func (c *fiveMethods) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	return &counted{stopper: c.started(d, f)}
}

func (c *fiveMethods) started(d time.Duration, f func()) stopper {
	c.timers.Add(1)
	c.live.Add(1)
	return stopper{time.AfterFunc(d, func() { c.live.Add(-1); f() }), c}
}

type stopper struct {
	timer *time.Timer
	clock *fiveMethods
}

func (s stopper) Stop() bool {
	stopped := s.timer.Stop()
	if stopped {
		s.clock.live.Add(-1)
	}
	return stopped
}

type counted struct {
	stopper
	fired chan time.Time
}

func (t *counted) Chan() <-chan time.Time   { return t.fired }
func (t *counted) Reset(time.Duration) bool { panic("Reset is none of the five") }

// Section 2: of clockwork only Now, Since, Until, NewTimer and AfterFunc are used: each leaf alone, at everything it can do.
func TestLeavesUseFiveMethodsOfTheirClock(t *testing.T) {
	hang := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	ok := func(context.Context) (int, error) { return 0, nil }
	down := func(context.Context) (int, error) { return 0, errDown }
	for name, leaves := range map[string]func(t *testing.T, c *fiveMethods){
		"retry": func(t *testing.T, c *fiveMethods) {
			r := retry.MustNew(retry.Config{Clock: c, MaxElapsed: time.Minute})
			_, err := retry.DoSafe(t.Context(), r, retry.ReadOnly("x", time.Minute), down)
			require.Error(t, err)
			require.NoError(t, r.Update(r.Config()))
		},
		"breaker": func(t *testing.T, c *fiveMethods) {
			for _, w := range []breaker.Window{breaker.Time(time.Second), breaker.Count(5), breaker.Count(5).Within(time.Second)} {
				b := breaker.MustNew(breaker.Config{Clock: c, Window: w, Consecutive: 2, SlowCall: time.Second})
				for range 3 {
					_, _ = leaf.Do(t.Context(), b, down)
				}
				require.Equal(t, breaker.Open, b.State())
				<-time.After(b.Config().OpenFor)
				_, err := leaf.Do(t.Context(), b, ok)
				require.NoError(t, err)
				require.Equal(t, breaker.Closed, b.Snapshot().State)
				require.NoError(t, b.Peek(t.Context()))
				_ = b.Inspect()
				require.NoError(t, b.Update(b.Config()))
			}
		},
		"bulkhead": func(t *testing.T, c *fiveMethods) {
			b := bulkhead.MustNew(bulkhead.Config{Clock: c, MaxConcurrent: 1, MaxWait: time.Second})
			held, err := b.Acquire(t.Context())
			require.NoError(t, err)
			_, err = leaf.Do(t.Context(), b, ok)
			require.ErrorIs(t, err, bulkhead.ErrFull)
			require.NoError(t, held.Settle(t.Context(), leaf.Outcome{}))
			_ = b.Inspect()
			require.NoError(t, b.Update(b.Config()))
		},
		"ratelimit": func(t *testing.T, c *fiveMethods) {
			l := ratelimit.MustNew(ratelimit.Config{Clock: c, Rate: 1, MaxWait: time.Minute})
			for range 3 {
				_, err := leaf.Do(t.Context(), l, ok)
				require.NoError(t, err)
			}
			require.False(t, l.Allow())
			_ = l.Inspect()
			require.NoError(t, l.Update(l.Config()))
		},
		"timeout": func(t *testing.T, c *fiveMethods) {
			limit := timeout.MustNew(timeout.Config{Clock: c, Limit: time.Second})
			for _, fn := range []func(context.Context) (int, error){hang, ok, down, func(ctx context.Context) (int, error) {
				release := timeout.Keep(ctx)
				defer release()
				<-time.After(2 * time.Second)
				_, _ = ctx.Deadline()
				return 0, ctx.Err()
			}} {
				_, _ = timeout.Do(t.Context(), limit, fn)
			}
		},
		"cooldown": func(t *testing.T, c *fiveMethods) {
			cool := cooldown.MustNew(cooldown.Config{Clock: c})
			cool.Hint(t.Context(), time.Second)
			_, err := leaf.Do(t.Context(), cool, ok)
			require.ErrorIs(t, err, cooldown.ErrCooling)
			<-time.After(time.Second)
			_, err = leaf.Do(t.Context(), cool, ok)
			require.NoError(t, err)
			require.NoError(t, cool.Peek(t.Context()))
			_ = cool.Inspect()
			require.NoError(t, cool.Update(cool.Config()))
		},
		"budgets": func(t *testing.T, c *fiveMethods) {
			for _, b := range []budget.Retry{
				budget.MustNewRatio(budget.RatioConfig{Clock: c}),
				budget.MustNewTokens(budget.TokenConfig{Clock: c, Capacity: 3, Refill: 1, Per: time.Second, Hold: time.Minute}),
			} {
				b.Deposit()
				for range 2 {
					held, ok := b.Reserve()
					require.True(t, ok)
					<-time.After(time.Second)
					held.Cancel()
					held, ok = b.Reserve()
					require.True(t, ok)
					held.Commit()
				}
			}
			require.NoError(t, budget.Sleep(t.Context(), c, time.Second))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.True(t, budget.Fits(ctx, c, time.Millisecond, 0))
			_, _ = budget.Left(ctx, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &fiveMethods{}
				require.NotPanics(t, func() { leaves(t, c) })
				require.Positive(t, c.asked.Load())
				require.Zero(t, c.live.Load(), "no timer stays")
			})
		})
	}
}

// busy is every kind of layer on one clock, each close to its limit.
func busy(c clockwork.Clock) pipeline.Builder {
	return pipeline.For("p").
		Timeout(timeout.MustNew(timeout.Config{Clock: c, Limit: time.Minute})).
		Retry(steady(func(r *retry.Config) { r.Clock = c })).
		Cooldown(cooldown.MustNew(cooldown.Config{Clock: c})).
		Breaker(breaker.MustNew(breaker.Config{Clock: c, Consecutive: 9})).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Clock: c, Rate: 1, MaxWait: time.Minute})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Clock: c, MaxConcurrent: 1, MaxWait: time.Minute})).
		AttemptTimeout(timeout.MustNew(timeout.Config{Clock: c, Limit: time.Second}))
}

func TestAFullPipelineUsesFiveMethodsOfItsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fiveMethods{}
		var events atomic.Int64
		p := busy(c).FallbackTimeout(time.Second).Observe(func(context.Context, pipeline.Event) { events.Add(1) }).MustBuild()
		require.NotPanics(t, func() {
			v, report, err := pipeline.DoDetailed(t.Context(), p, fails(1, &later{wait: 3 * time.Second}))
			require.NoError(t, err)
			require.Equal(t, 2, v)
			require.Equal(t, 3*time.Second, report.Elapsed)
			// Both run into the attempt's limit, then find the bucket empty; the second waits for the slot, too.
			done := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := pipeline.DoOr(context.Background(), p, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
						func(ctx context.Context, err error) (string, error) { _, _ = ctx.Deadline(); return "", err })
					done <- err
				}()
			}
			require.ErrorIs(t, <-done, timeout.ErrTimeout)
			require.ErrorIs(t, <-done, timeout.ErrTimeout)
			release := make(chan struct{})
			_, err = pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) { <-release; return 0, nil }, pipeline.Detached[int]{})
			require.Error(t, err)
			close(release)
		})
		synctest.Wait()
		require.Positive(t, events.Load())
		require.Positive(t, c.asked.Load())
		require.Zero(t, c.live.Load(), "no timer stays")
	})
}

// Section 2, timeout: an attempt's context derives from the caller's with min(total, attempt), not from a second layer: its values
// and its cause are the caller's, and whoever waits on it starts one timer, whichever limit comes first.
func TestAnAttemptsContextDerivesFromTheCallers(t *testing.T) {
	errGone := errors.New("gone")
	for name, test := range map[string]struct {
		total, attempt time.Duration
		late           bool // the run begins when less than an attempt is left
		want           time.Duration
	}{
		"the attempt's": {total: time.Hour, attempt: time.Second, want: time.Second},
		"the total's":   {total: 2 * time.Second, attempt: 1500 * time.Millisecond, late: true, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, cancels := range []bool{false, true} {
					c := &fiveMethods{}
					b := pipeline.For("p").Timeout(timeout.MustNew(timeout.Config{Clock: c, Limit: test.total, Name: "total"})).
						AttemptTimeout(timeout.MustNew(timeout.Config{Clock: c, Limit: test.attempt, Name: "attempt"}))
					if test.late {
						b = b.With(&rule{acquire: func(context.Context) error { <-time.After(time.Second); return nil }})
					}
					caller, cancel := context.WithCancelCause(context.WithValue(t.Context(), tenant{}, 7))
					defer cancel(nil)
					err := b.MustBuild().Run(caller, func(ctx context.Context) error {
						require.Equal(t, 7, ctx.Value(tenant{}))
						deadline, ok := ctx.Deadline()
						require.True(t, ok)
						require.Equal(t, test.want, time.Until(deadline))
						require.Zero(t, c.timers.Load(), "nobody waits yet")
						child, stop := context.WithCancel(ctx)
						defer stop()
						_, _ = ctx.Done(), child.Done()
						require.EqualValues(t, 1, c.timers.Load())
						if cancels {
							cancel(errGone)
							<-child.Done()
							require.Equal(t, errGone, context.Cause(child))
							require.Equal(t, errGone, context.Cause(ctx))
							return ctx.Err()
						}
						<-child.Done()
						limit, ok := context.Cause(child).(*timeout.Error)
						require.True(t, ok)
						require.Equal(t, map[bool]string{false: "attempt", true: "total"}[test.late], limit.Name)
						return ctx.Err()
					})
					assert.Error(t, err)
					require.EqualValues(t, 1, c.timers.Load(), "and no second one")
					require.Zero(t, c.live.Load(), "none stays")
				}
			})
		})
	}
}
