package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/stretchr/testify/require"
)

// begin is a loop on virtual time with a pool of ten tokens, no jitter and a constant second.
func begin(t *testing.T, ctx context.Context, change func(*Config)) (*Loop, *budget.Tokens) {
	t.Helper()
	pool := budget.MustNewTokens(budget.TokenConfig{Capacity: 10})
	cfg := Config{Backoff: Constant(time.Second), Jitter: None, Budget: pool}
	if change != nil {
		change(&cfg)
	}
	l, err := mustNew(t, cfg).Begin(ctx, Unsafe)
	require.NoError(t, err)
	return &l, pool
}

// runs makes fn's n-th run fail with err, up to the reserved token.
func fails(t *testing.T, ctx context.Context, l *Loop, err error) {
	t.Helper()
	l.Sent()
	require.NoError(t, l.Judge(ctx, err))
	require.NoError(t, l.Reserve(ctx))
}

func TestARefusalOfAFirstTryIsTheResultItself(t *testing.T) {
	l, pool := begin(t, t.Context(), nil)
	no := &refused{wait: time.Second}
	require.Equal(t, no, l.Refused(t.Context(), no, false))
	require.Zero(t, l.Reason(), "there was nothing to retry")
	require.Zero(t, l.Attempts())
	require.Equal(t, 10, pool.Balance())
}

func TestARefusalAfterARunIsNoRejection(t *testing.T) {
	l, pool := begin(t, t.Context(), nil)
	fails(t, t.Context(), l, errA)
	no := &refused{wait: 7 * time.Second}
	final := l.Refused(t.Context(), no, false)
	require.Equal(t, &Error{Attempts: 1, Reason: Refused, Last: errA, Stop: no, Wait: 7 * time.Second, asked: 7 * time.Second}, final)
	require.Equal(t, Refused, l.Reason())
	require.False(t, refusal.Is(final))
	require.Equal(t, 10, pool.Balance(), "the token is back at once")
}

func TestRefusedTriesCountAndTakeNoTokenBeforeTheFirstRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Scheduled
		l, pool := begin(t, t.Context(), func(c *Config) {
			c.OnRetry = func(_ context.Context, s Scheduled) { told = append(told, s) }
		})
		no := &refused{wait: 5 * time.Second}
		start := time.Now()
		require.NoError(t, l.Refused(t.Context(), no, true))
		require.NoError(t, l.Reserve(t.Context()))
		require.Equal(t, 10, pool.Balance(), "what will be sent is a first attempt")
		require.Equal(t, 5*time.Second, l.Delay(), "the limit's wait is the lower bound")
		require.Equal(t, 5*time.Second, l.Wait())
		require.NoError(t, l.Sleep(t.Context()))
		require.Equal(t, 5*time.Second, time.Since(start))
		require.NoError(t, l.Refused(t.Context(), no, true))
		require.Equal(t, []Scheduled{{Retry: 1, Delay: 5 * time.Second, Err: no}}, told)
		require.Equal(t, no, l.Refused(t.Context(), no, true), "three tries of three: the refusal itself")
		require.Equal(t, AttemptsExhausted, l.Reason())
		require.Zero(t, l.Attempts(), "attempts are runs of fn")
	})
}

func TestARefusedTryAfterARunKeepsItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, pool := begin(t, t.Context(), func(c *Config) { c.MaxAttempts = 4 })
		fails(t, t.Context(), l, errA)
		require.Equal(t, 9, pool.Balance())
		require.NoError(t, l.Sleep(t.Context()))
		require.NoError(t, l.Refused(t.Context(), &refused{}, true))
		require.NoError(t, l.Reserve(t.Context()))
		require.Equal(t, 9, pool.Balance(), "one token per retry, however often a guard refused it")
		require.NoError(t, l.Sleep(t.Context()))
		l.Sent()
		l.End()
		require.Equal(t, 9, pool.Balance(), "it was sent")
		require.Equal(t, 2, l.Attempts())
		require.NoError(t, l.Judge(t.Context(), errB), "three tries of four")
		require.NoError(t, l.Reserve(t.Context()))
		final := l.Refused(t.Context(), &refused{}, true)
		require.Equal(t, Refused, stopOf(t, final).Reason, "four of four")
		require.ErrorIs(t, final, errB)
		require.Equal(t, 9, pool.Balance())
	})
}

func TestABulkheadsWaitIsNoLowerBound(t *testing.T) {
	l, _ := begin(t, t.Context(), nil)
	require.NoError(t, l.Refused(t.Context(), &fullUp{refused{wait: time.Hour}}, true))
	require.Equal(t, time.Second, l.Delay())
	require.Zero(t, l.Wait())
}

func TestARefusalWhoseWaitDoesNotFitStops(t *testing.T) {
	for name, ran := range map[string]bool{"never ran": false, "ran": true} {
		t.Run(name, func(t *testing.T) {
			l, pool := begin(t, t.Context(), nil)
			if ran {
				fails(t, t.Context(), l, errA)
			}
			no := &refused{wait: time.Hour}
			final := l.Refused(t.Context(), no, true)
			if !ran {
				require.Equal(t, no, final)
				require.Equal(t, RetryAfterExceedsMaximumDelay, l.Reason())
				return
			}
			stop := stopOf(t, final)
			require.Equal(t, Refused, stop.Reason)
			require.Equal(t, time.Hour, stop.Wait)
			require.Equal(t, 10, pool.Balance())
		})
	}
}

func TestAGuardWhoseWaitCtxEnded(t *testing.T) {
	for name, ran := range map[string]bool{"never ran": false, "ran": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			l, pool := begin(t, ctx, nil)
			if ran {
				fails(t, ctx, l, errA)
			}
			cancel(errShutdown)
			final := l.Refused(ctx, ctx.Err(), true)
			if !ran {
				require.Equal(t, context.Canceled, final, "it comes back as it is")
				return
			}
			stop := stopOf(t, final)
			require.Equal(t, ContextEnded, stop.Reason)
			require.ErrorIs(t, final, context.Canceled)
			require.ErrorIs(t, final, errShutdown)
			require.ErrorIs(t, final, errA)
			require.Equal(t, 10, pool.Balance())
		})
	}
}

func TestARefusalUnderAnEndedCtxIsNotRetried(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, _ := begin(t, ctx, nil)
	cancel()
	no := &refused{}
	require.Equal(t, no, l.Refused(ctx, no, true), "nothing happened yet")
}

func TestOnRetryIsToldTheFailureThatIsRetried(t *testing.T) {
	var told []error
	l, _ := begin(t, t.Context(), func(c *Config) {
		c.MaxAttempts, c.Backoff = 9, Immediate
		c.OnRetry = func(_ context.Context, s Scheduled) { told = append(told, s.Err) }
	})
	no := &refused{}
	require.NoError(t, l.Refused(t.Context(), no, true))
	require.NoError(t, l.Reserve(t.Context()))
	fails(t, t.Context(), l, errA)
	require.NoError(t, l.Refused(t.Context(), no, true))
	require.NoError(t, l.Reserve(t.Context()))
	fails(t, t.Context(), l, errB)
	l.End()
	require.Equal(t, []error{no, errA, no, errB}, told)
}

func TestCtxThatEndsAWaitBeforeAnyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(errShutdown) })
		l, _ := begin(t, ctx, nil)
		require.NoError(t, l.Refused(ctx, &refused{}, true))
		require.NoError(t, l.Reserve(ctx))
		final := l.Sleep(ctx)
		stop := stopOf(t, final)
		require.Equal(t, ContextEnded, stop.Reason)
		require.Zero(t, stop.Attempts)
		require.NoError(t, stop.Last)
		require.ErrorIs(t, final, context.Canceled)
		require.ErrorIs(t, final, errShutdown)
	})
}

func TestNotBeforeRaisesTheDelayAndConsumesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, pool := begin(t, t.Context(), nil)
		l.Sent()
		require.NoError(t, l.Judge(t.Context(), errA))
		require.NoError(t, l.NotBefore(t.Context(), time.Second/2))
		require.Equal(t, time.Second, l.Delay(), "at least, never less")
		require.NoError(t, l.NotBefore(t.Context(), 3*time.Second))
		require.NoError(t, l.NotBefore(t.Context(), 0))
		require.NoError(t, l.NotBefore(t.Context(), -time.Hour))
		require.Equal(t, 3*time.Second, l.Delay())
		require.NoError(t, l.Reserve(t.Context()))
		require.NoError(t, l.Sleep(t.Context()))
		require.Zero(t, l.Delay())

		require.NoError(t, l.NotBefore(t.Context(), 2*time.Second), "after the sleep")
		require.Equal(t, 2*time.Second, l.Wait(), "what was slept already is not asked for again")
		start := time.Now()
		require.NoError(t, l.Sleep(t.Context()))
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, 9, pool.Balance(), "the reservation is kept")
		l.Sent()
		require.NoError(t, l.Judge(t.Context(), errB), "no attempt was consumed")
		l.End()
	})
}

func TestNotBeforeThatDoesNotFitIsADeferral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for wait, reason := range map[time.Duration]Reason{
			10 * time.Second: RetryAfterExceedsDeadline,
			21 * time.Second: RetryAfterExceedsMaximumDelay,
		} {
			l, pool := begin(t, ctx, nil)
			fails(t, ctx, l, errA)
			final := l.NotBefore(ctx, wait)
			stop := stopOf(t, final)
			require.Equal(t, reason, stop.Reason)
			require.Equal(t, wait, stop.Wait)
			asked, ok := stop.RetryAfter()
			require.True(t, ok)
			require.Equal(t, wait, asked)
			require.ErrorIs(t, final, errA)
			require.Equal(t, reason == RetryAfterExceedsDeadline, errors.Is(final, context.DeadlineExceeded))
			require.Equal(t, 10, pool.Balance(), "the token is back")
		}
	})
}

func TestNotBeforeIsSpreadToo(t *testing.T) {
	l, _ := begin(t, t.Context(), func(c *Config) { c.Jitter, c.Rand = Full, always(0.5) })
	l.Sent()
	require.NoError(t, l.Judge(t.Context(), errA))
	require.NoError(t, l.NotBefore(t.Context(), 3*time.Second))
	require.Equal(t, 3500*time.Millisecond, l.Delay())
}

func TestEndGivesBackOnce(t *testing.T) {
	l, pool := begin(t, t.Context(), nil)
	fails(t, t.Context(), l, errA)
	require.Equal(t, 9, pool.Balance())
	l.End()
	l.End()
	require.Equal(t, 10, pool.Balance())
}

func TestTheBudgetIsToldOfEachFirstAttemptOnce(t *testing.T) {
	b := budget.MustNewRatio(budget.RatioConfig{Ratio: 1, MinPerSecond: budget.Off, Clock: newClock()})
	cfg := Config{Backoff: Immediate, Budget: b}
	one, other := mustNew(t, cfg), mustNew(t, cfg)
	_, err := Do(t.Context(), one, script(nil).fn)
	require.NoError(t, err)
	_, err = Do(t.Context(), one, script(errA).fn)
	require.Equal(t, AttemptsExhausted, stopOf(t, err).Reason, "two calls have paid for two retries")
	require.Equal(t, 0, b.Balance())
	_, err = Do(t.Context(), other, script(errA).fn)
	require.ErrorIs(t, err, ErrBudgetExhausted, "one call pays for one retry: one budget, shared by two policies")
	require.Equal(t, 2, stopOf(t, err).Attempts)
}

func TestNoBudgetOptsOut(t *testing.T) {
	r := mustNew(t, Config{NoBudget: true, MaxAttempts: 64, Backoff: Immediate})
	for range 10 { // 630 retries: far more than the default budget has
		s := script(errA)
		_, err := Do(t.Context(), r, s.fn)
		require.Equal(t, AttemptsExhausted, stopOf(t, err).Reason)
		require.Len(t, s.at, 64)
	}
}

func TestThePrivateBudgetIsTheDefault(t *testing.T) {
	r := mustNew(t, Config{MaxAttempts: 64, Backoff: Immediate, Clock: newClock()})
	s := script(errA)
	_, err := Do(t.Context(), r, s.fn)
	require.Equal(t, AttemptsExhausted, stopOf(t, err).Reason)
	s = script(errA)
	_, err = Do(t.Context(), r, s.fn)
	stop := stopOf(t, err)
	require.Equal(t, RetryBudgetExhausted, stop.Reason)
	require.Len(t, s.at, 38, "100 tokens, 63 of them gone")
	require.Equal(t, 38, stop.Attempts)
	require.ErrorIs(t, err, errA)
}

func TestABudgetThatHandsOutNothingInAReservationIsTaken(t *testing.T) {
	r := mustNew(t, Config{Budget: nilBudget{}, Backoff: Immediate})
	v, err := Do(t.Context(), r, script(errA, nil).fn)
	require.NoError(t, err)
	require.Equal(t, 2, v)
}

type nilBudget struct{}

func (nilBudget) Deposit()                            {}
func (nilBudget) Reserve() (budget.Reservation, bool) { return nil, true }
