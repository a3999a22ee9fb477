package retry

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/stretchr/testify/require"
)

// stopOf is err as the loop's own stop.
func stopOf(t *testing.T, err error) *Error {
	t.Helper()
	var stop *Error
	require.ErrorAs(t, err, &stop)
	require.Same(t, err, stop, "outermost")
	return stop
}

func TestPermanentEndsTheLoopWhateverIsAllowed(t *testing.T) { // C03
	for name, attempts := range map[string]int{"unlimited": Unlimited, "five": 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				r := mustNew(t, Config{MaxAttempts: attempts, Backoff: Constant(100 * time.Millisecond), Jitter: None})
				c := script(errA, Permanent(errB))
				_, err := Do(ctx, r, c.fn)
				require.Equal(t, seconds(0, 0.1), c.at)
				require.Equal(t, 100*time.Millisecond, time.Since(c.start))
				require.ErrorIs(t, err, errB)
				require.Equal(t, c.script[1], err, "unchanged")
				require.NotNil(t, errors.Unwrap(err))
				require.Equal(t, "b", err.Error())
				require.NoError(t, ctx.Err())
			})
		})
	}
}

func TestCancelInAWaitKeepsTheFailureAndTheCause(t *testing.T) { // C04
	clock := newClock()
	r := mustNew(t, Config{MaxAttempts: 5, Backoff: Constant(time.Hour), MaxDelay: time.Hour, Jitter: None, Clock: clock})
	goroutines := runtime.NumGoroutine()
	for i := range 1001 {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := script(errA)
		result := make(chan error)
		go func() { _, err := Do(ctx, r, c.fn); result <- err }()
		require.NoError(t, clock.BlockUntilContext(t.Context(), 1))
		if i == 0 {
			clock.Advance(3 * time.Second)
		} else {
			clock.Advance(time.Millisecond)
		}
		cancel(errShutdown)
		err := <-result
		require.Len(t, c.at, 1)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errShutdown)
		require.ErrorIs(t, err, errA)
		stop := stopOf(t, err)
		require.Equal(t, ContextEnded, stop.Reason)
		require.Equal(t, 1, stop.Attempts)
	}
	require.False(t, pending(clock), "every timer was stopped")
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+1)
}

func TestCancelInAWaitReturnsAtOnce(t *testing.T) { // C04, in virtual real time
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(errShutdown) })
		c := script(errA)
		_, err := Do(ctx, mustNew(t, Config{Backoff: Constant(time.Hour), MaxDelay: time.Hour, Jitter: None}), c.fn)
		require.Equal(t, 3*time.Second, time.Since(c.start))
		require.ErrorIs(t, err, errShutdown)
		require.Len(t, c.at, 1)
	})
}

func TestNoWaitThatIsTooLateIsStarted(t *testing.T) { // C05
	for _, c := range []struct {
		backoff time.Duration
		calls   []time.Duration
		last    int
	}{
		{4 * time.Second, seconds(0, 4), 2},
		{5 * time.Second, seconds(0), 1}, // exactly on the deadline
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			s := script(errors.New("err1"), errors.New("err2"), errors.New("err3"))
			_, err := Do(ctx, mustNew(t, Config{MaxAttempts: 10, Backoff: Constant(c.backoff), Jitter: None}), s.fn)
			require.Equal(t, c.calls, s.at)
			require.Equal(t, c.calls[len(c.calls)-1], time.Since(s.start), "at once")
			require.ErrorIs(t, err, s.script[c.last-1])
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, ctx.Err())
			stop := stopOf(t, err)
			require.Equal(t, RetryDelayExceedsDeadline, stop.Reason)
			require.Equal(t, c.backoff, stop.Wait)
			_, asked := stop.RetryAfter()
			require.False(t, asked, "a delay of our own is nothing for a header")
		})
	}
}

func TestTokensComeBackFromRetriesThatAreNeverSent(t *testing.T) { // C08
	for name, make := range map[string]func(t *testing.T) (b budget.Retry, balance func() int){
		"tokens": func(t *testing.T) (budget.Retry, func() int) {
			b := budget.MustNewTokens(budget.TokenConfig{Capacity: 10})
			return b, b.Balance
		},
		"ratio": func(t *testing.T) (budget.Retry, func() int) {
			b := budget.MustNewRatio(budget.RatioConfig{Ratio: budget.Off, MinPerSecond: 1})
			return b, b.Balance
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, balance := make(t)
				r := mustNew(t, Config{Backoff: Constant(time.Second), Jitter: None, Budget: b})
				runs := 0
				for range 20 { // (a)
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(time.Millisecond, cancel)
					_, err := Do(ctx, r, func(context.Context) (int, error) { runs++; return 0, errA })
					require.ErrorIs(t, err, context.Canceled)
				}
				require.Equal(t, 20, runs)
				require.Equal(t, 10, balance())

				var all, succeeded, refused atomic.Int32 // (b)
				start := time.Now()
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						own, first := fmt.Errorf("call %d", i), true
						_, err := Do(t.Context(), r, func(context.Context) (int, error) {
							all.Add(1)
							if first {
								first = false
								return 0, own
							}
							return 1, nil
						})
						switch {
						case err == nil && time.Since(start) == time.Second:
							succeeded.Add(1)
						case errors.Is(err, ErrBudgetExhausted) && errors.Is(err, own) && time.Since(start) == 0:
							refused.Add(1)
						default:
							t.Errorf("call %d after %v: %v", i, time.Since(start), err)
						}
					})
				}
				wg.Wait()
				require.EqualValues(t, 10, succeeded.Load())
				require.EqualValues(t, 90, refused.Load())
				require.EqualValues(t, 110, all.Load())
				require.Equal(t, 0, balance())
			})
		})
	}
}

func TestAnExpiredParentStopsInnerRetries(t *testing.T) { // C09, the retry's part
	synctest.Test(t, func(t *testing.T) {
		errTotal := errors.New("total 2 s")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errTotal)
		defer cancel()
		r := mustNew(t, Config{MaxAttempts: 5, Backoff: Constant(100 * time.Millisecond), Jitter: None})
		var at []time.Duration
		start := time.Now()
		_, err := Do(ctx, r, func(ctx context.Context) (int, error) {
			at = append(at, time.Since(start))
			attempt, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
			defer cancel()
			<-attempt.Done()
			return 0, errA
		})
		require.Equal(t, seconds(0, 1.6), at)
		require.Equal(t, 2*time.Second, time.Since(start))
		stop := stopOf(t, err)
		require.Equal(t, ContextEnded, stop.Reason)
		require.ErrorIs(t, err, errTotal)
		require.ErrorIs(t, err, errA)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		<-time.After(8 * time.Second)
		require.Len(t, at, 2)
	})
}

func TestRetryAfterIsALowerBoundUpToItsMaximum(t *testing.T) { // C31
	for name, c := range map[string]struct {
		after    time.Duration
		deadline time.Duration
		calls    []time.Duration
		reason   Reason
	}{
		"a: exactly the cap": {after: 60 * time.Second, calls: seconds(0, 60)},
		"b: just above":      {after: 61 * time.Second, calls: seconds(0), reason: RetryAfterExceedsMaximumDelay},
		"c: an hour":         {after: time.Hour, calls: seconds(0), reason: RetryAfterExceedsMaximumDelay},
		"d: past the deadline": {after: 30 * time.Second, deadline: 10 * time.Second, calls: seconds(0),
			reason: RetryAfterExceedsDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if c.deadline > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), c.deadline)
				}
				defer cancel()
				r := mustNew(t, Config{MaxAttempts: 3, Backoff: Constant(time.Second), MaxRetryAfter: 60 * time.Second})
				busy := &throttled{c.after}
				s := script(busy, nil)
				_, err := Do(ctx, r, s.fn)
				require.Equal(t, c.calls, s.at)
				if c.reason == 0 {
					require.NoError(t, err)
					return
				}
				require.Zero(t, time.Since(s.start), "not slept")
				stop := stopOf(t, err)
				require.Equal(t, c.reason, stop.Reason)
				require.Equal(t, c.reason == RetryAfterExceedsDeadline, errors.Is(err, context.DeadlineExceeded))
				wait, ok := stop.RetryAfter()
				require.True(t, ok, "a deferral carries its wait")
				require.Equal(t, c.after, wait)
				require.ErrorIs(t, err, busy)
			})
		})
	}
}
