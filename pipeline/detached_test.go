package pipeline_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

// occupied is a rule that counts what really runs.
type occupied struct{ rule }

func (*occupied) Occupies() bool { return true }

// C10: the slot follows the function's real end, not the caller's return; the breaker settles at the deadline.
func TestDetachedSlotIsHeldUntilFnReallyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		b := breaker.MustNew(breaker.Config{})
		p := pipeline.For("p").Breaker(b).Bulkhead(h).AttemptTimeout(limitOf(100 * time.Millisecond)).MustBuild()
		began := time.Now()
		at := func(d time.Duration) { <-time.After(time.Until(began.Add(d))) }
		var running atomic.Int32
		late := make(chan string, 1)
		callA := func() (string, error) {
			return pipeline.DoDetached(t.Context(), p, func(context.Context) (string, error) {
				require.EqualValues(t, 1, running.Add(1))
				defer running.Add(-1)
				at(250 * time.Millisecond) // ignores its context
				return "A", nil
			}, pipeline.Detached[string]{Late: func(v string, err error) {
				require.NoError(t, err)
				require.Zero(t, h.InUse(), "told after its guards were settled")
				late <- v
			}})
		}
		_, err := callA()
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		limit, ok := err.(*timeout.Error)
		require.True(t, ok, "%T %v", err, err)
		require.NoError(t, limit.Err, "it has returned nothing")
		require.Equal(t, 1, b.Snapshot().Failures, "the breaker settles at the deadline")
		require.Equal(t, 1, h.InUse())

		at(150 * time.Millisecond)
		_, err = pipeline.DoDetached(t.Context(), p, func(context.Context) (string, error) { t.Error("B must not run"); return "", nil },
			pipeline.Detached[string]{})
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.True(t, rejection.Is(err))
		require.Equal(t, "A", <-late)
		require.Equal(t, 250*time.Millisecond, time.Since(began))
		require.Zero(t, h.InUse())

		at(251 * time.Millisecond)
		v, err := pipeline.DoDetached(t.Context(), p, func(context.Context) (string, error) { return "C", nil }, pipeline.Detached[string]{})
		require.NoError(t, err)
		require.Equal(t, "C", v)
		require.Zero(t, h.InUse())
	})
}

// C10, cooperatively: Do returns when fn does, and the slot is held as long.
func TestCooperativeSlotIsHeldUntilFnReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		p := pipeline.For("p").Bulkhead(h).AttemptTimeout(limitOf(100 * time.Millisecond)).MustBuild()
		done := make(chan error)
		go func() {
			done <- p.Run(t.Context(), func(context.Context) error { <-time.After(250 * time.Millisecond); return errDown })
		}()
		<-time.After(150 * time.Millisecond)
		require.ErrorIs(t, p.Run(t.Context(), func(context.Context) error { return nil }), bulkhead.ErrFull)
		require.ErrorIs(t, <-done, timeout.ErrTimeout)
		require.Zero(t, h.InUse())
	})
}

// What is in time is as with Do: results, failures, retries, panics and Goexit, on the caller's goroutine.
func TestDetachedInTimeIsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := pipeline.Detached[int]{
			Late:      func(int, error) { t.Error("in time is not late") },
			LatePanic: func(any) { t.Error("in time is not late") },
		}
		g, o := &rule{}, &occupied{}
		p := pipeline.For("p").Retry(steady()).Breaker(g).Bulkhead(o).AttemptTimeout(limitOf(time.Minute)).MustBuild()
		v, err := pipeline.DoDetached(t.Context(), p, fails(2, errDown), never)
		require.NoError(t, err)
		require.Equal(t, 3, v)
		require.PanicsWithValue(t, "fn", func() {
			_, _ = pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) { panic("fn") }, never)
		})
		goexits(t, func() {
			_, _ = pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }, never)
		})
		want := []leaf.Verdict{leaf.Returned, leaf.Returned, leaf.Returned, leaf.Panicked, leaf.Panicked}
		require.Equal(t, want, g.verdicts())
		require.Equal(t, want, o.verdicts())
	})
}

// The next attempt begins while the last one's callback still runs, and holds its slot.
func TestDetachedRetryRunsBesideTheLateAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 2})
		g := &rule{}
		p := pipeline.For("p").Retry(steady()).Breaker(g).Bulkhead(h).AttemptTimeout(limitOf(time.Second)).MustBuild()
		var runs atomic.Int32
		lates := 0
		v, err := pipeline.DoDetached(t.Context(), p, func(context.Context) (int32, error) {
			n := runs.Add(1)
			if n == 1 {
				<-time.After(5 * time.Second)
				return n, errDown
			}
			require.Equal(t, 2, h.InUse())
			return n, nil
		}, pipeline.Detached[int32]{Late: func(v int32, err error) {
			require.EqualValues(t, 1, v)
			require.Same(t, errDown, err)
			lates++
		}})
		require.NoError(t, err)
		require.EqualValues(t, 2, v)
		require.Equal(t, 1, h.InUse())
		require.Equal(t, []leaf.Verdict{leaf.TimedOut, leaf.Returned}, g.verdicts())
		<-time.After(time.Minute)
		synctest.Wait()
		require.Zero(t, h.InUse())
		require.Equal(t, 1, lates)
	})
}

// The caller's end and the total timeout cut a detached call as well; what the late callback's guards are told.
func TestDetachedIsCutByTheCallerAndTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			b    pipeline.Builder
			end  func(context.Context) (context.Context, context.CancelFunc)
			want leaf.Verdict
			is   error
		}{
			"cancelled": {pipeline.For("p"), func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(errDown) })
				return ctx, func() { cancel(nil) }
			}, leaf.CallerCancelled, errDown},
			"deadline": {pipeline.For("p"), func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}, leaf.CallerExpired, context.DeadlineExceeded},
			"total": {pipeline.For("p").Timeout(limitOf(time.Second)), context.WithCancel, leaf.CallerExpired, timeout.ErrTimeout},
		} {
			g, o := &rule{}, &occupied{}
			ctx, cancel := test.end(t.Context())
			p := test.b.Breaker(g).Bulkhead(o).MustBuild()
			var err error
			took := in(func() {
				_, err = pipeline.DoDetached(ctx, p, func(context.Context) (int, error) {
					<-time.After(3 * time.Second)
					return 0, errDown
				}, pipeline.Detached[int]{})
			})
			require.Equal(t, time.Second, took, name)
			require.ErrorIs(t, err, test.is, name)
			require.Equal(t, []leaf.Verdict{test.want}, g.verdicts(), name)
			require.Empty(t, o.verdicts())
			<-time.After(3 * time.Second)
			synctest.Wait()
			require.Equal(t, []leaf.Verdict{test.want}, o.verdicts(), name)
			require.Same(t, errDown, o.told[0].Err)
			cancel()
		}
	})
}

// A late panic is told, or ends nothing but its goroutine when it is a Goexit; the slot comes back either way.
func TestDetachedLatePanicAndGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &occupied{}
		p := pipeline.For("p").Bulkhead(o).AttemptTimeout(limitOf(time.Second)).MustBuild()
		var got any
		_, err := pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) {
			<-time.After(2 * time.Second)
			panic("late")
		}, pipeline.Detached[int]{LatePanic: func(v any) { require.Len(t, o.told, 1); got = v }})
		require.ErrorIs(t, err, timeout.ErrTimeout)
		<-time.After(time.Minute)
		synctest.Wait()
		_, err = pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) {
			<-time.After(2 * time.Second)
			runtime.Goexit()
			return 0, nil
		}, pipeline.Detached[int]{Late: func(int, error) { t.Error("nothing to tell") }})
		require.ErrorIs(t, err, timeout.ErrTimeout)
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, "late", got)
		require.Equal(t, []leaf.Verdict{leaf.Panicked, leaf.Panicked}, o.verdicts())
	})
}

// A result at the very instant of the deadline is in time or late, never both and never lost.
func TestDetachedResultAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		p := pipeline.For("p").Bulkhead(h).AttemptTimeout(limitOf(time.Second)).MustBuild()
		for range 300 {
			late := make(chan int, 1)
			v, err := pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) {
				<-time.After(time.Second)
				return 7, nil
			}, pipeline.Detached[int]{Late: func(v int, _ error) { late <- v }})
			synctest.Wait()
			if err == nil {
				require.Equal(t, 7, v)
				require.Empty(t, late)
			} else {
				require.ErrorIs(t, err, timeout.ErrTimeout)
				require.Equal(t, 7, <-late)
			}
			require.Zero(t, h.InUse())
		}
	})
}

// What the judge of a late error panics with is told as a late panic, and every slot comes back: nobody waits for that goroutine.
func TestJudgeOfALateErrorPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		p := pipeline.For("p").Bulkhead(h).AttemptTimeout(limitOf(time.Second)).MustBuild()
		late := make(chan any, 1)
		_, err := pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) {
			<-time.After(2 * time.Second)
			return 0, badJudge{}
		}, pipeline.Detached[int]{
			LatePanic: func(v any) { late <- v },
			Late:      func(int, error) { late <- "both" },
		})
		require.ErrorIs(t, err, timeout.ErrTimeout)
		require.Equal(t, 1, h.InUse())
		require.Equal(t, "judge", <-late)
		synctest.Wait()
		require.Zero(t, h.InUse())
		require.Empty(t, late)
	})
}
