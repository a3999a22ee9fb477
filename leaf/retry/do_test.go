package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/stretchr/testify/require"
)

func TestASuccessIsReturnedAndNeverDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v, err := Do(ctx, mustNew(t, Config{}), func(context.Context) (string, error) {
			<-time.After(time.Minute) // long after the deadline
			return "done", nil
		})
		require.NoError(t, err)
		require.Equal(t, "done", v)
	})
}

func TestADoneCtxRunsNothingAndConsumesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errShutdown)
	b := budget.MustNewRatio(budget.RatioConfig{Ratio: 1000, Clock: newClock()})
	_, err := Do(ctx, mustNew(t, Config{Budget: b}), func(context.Context) (int, error) {
		t.Error("it ran")
		return 1, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errShutdown)
	require.False(t, refusal.Is(err))
	require.Equal(t, 100, b.Balance(), "no deposit either")
}

func TestAFailureGivesTheZeroValue(t *testing.T) {
	v, err := Do(t.Context(), mustNew(t, Config{MaxAttempts: 1}), func(context.Context) (int, error) { return 7, errA })
	require.ErrorIs(t, err, errA)
	require.Zero(t, v)
	v, err = Do(t.Context(), mustNew(t, Config{}), func(context.Context) (int, error) { return 7, Permanent(errA) })
	require.ErrorIs(t, err, errA)
	require.Zero(t, v)
}

func TestAttemptsExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustNew(t, Config{Name: "billing", MaxAttempts: 4, Backoff: Exponential(time.Second), Jitter: None})
		c := script(errA, errA, errA, errB)
		_, err := Do(t.Context(), r, c.fn)
		require.Equal(t, seconds(0, 1, 3, 7), c.at)
		stop := stopOf(t, err)
		require.Equal(t, AttemptsExhausted, stop.Reason)
		require.Equal(t, 4, stop.Attempts)
		require.Equal(t, errB, stop.Last)
		require.NoError(t, stop.Stop)
		require.False(t, stop.Rejected())
		require.Equal(t, `retry "billing": attempts_exhausted after 4 attempts: last failure: b`, err.Error())
	})
}

func TestWhatIsNeverRetriedByItsKindComesBackUnchanged(t *testing.T) {
	nested := &Error{Attempts: 3, Reason: AttemptsExhausted, Last: errB}
	for name, c := range map[string]struct {
		cfg Config
		err error
	}{
		"permanent":                           {Config{}, Permanent(errA)},
		"permanent, deep":                     {Config{}, fmt.Errorf("deep: %w", errors.Join(errB, Permanent(errA)))},
		"a rejection":                         {Config{}, &refused{}},
		"a rejection, deep":                   {Config{}, fmt.Errorf("deep: %w", &refused{})},
		"another loop's":                      {Config{}, nested},
		"another's, deep":                     {Config{}, fmt.Errorf("deep: %w", nested)},
		"RetryIf false":                       {Config{RetryIf: func(err error) bool { return err == errB }}, errA},
		"StopIf true":                         {Config{StopIf: func(err error) bool { return err == errA }}, errA},
		"StopIf beats":                        {Config{StopIf: all, RetryIf: all}, errA},
		"RetryIf cannot help a permanent one": {Config{RetryIf: all}, Permanent(errA)},
		"nor a rejection":                     {Config{RetryIf: all}, &refused{}},
		"a permanent one in a nested one":     {Config{RetryNested: true}, &Error{Reason: ContextEnded, Last: Permanent(errA)}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ends := range []bool{false, true} { // also when ctx has ended meanwhile
				ctx, cancel := context.WithCancel(t.Context())
				runs := 0
				_, err := Do(ctx, mustNew(t, c.cfg), func(context.Context) (int, error) {
					if runs++; ends {
						cancel()
					}
					return 0, c.err
				})
				require.Equal(t, 1, runs)
				require.Equal(t, c.err, err)
				cancel()
			}
		})
	}
}

func TestWhatIsNoRejectionIsRetried(t *testing.T) {
	for name, c := range map[string]struct {
		cfg Config
		err error
	}{
		"a joined error with one branch that ran": {Config{}, errors.Join(errA, &refused{})},
		"RetryNested":                      {Config{RetryNested: true}, &Error{Reason: Refused, Last: errA, Stop: &refused{}}},
		"somebody else's context error":    {Config{}, context.Canceled},
		"an attempt's timeout":             {Config{}, fmt.Errorf("attempt: %w", context.DeadlineExceeded)},
		"RetryIf true and StopIf not true": {Config{RetryIf: all, StopIf: func(error) bool { return false }}, errA},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Backoff = Immediate
			s := script(c.err, nil)
			v, err := Do(t.Context(), mustNew(t, c.cfg), s.fn)
			require.NoError(t, err)
			require.Equal(t, 2, v)
		})
	}
}

func TestARejectionAfterAnEarlierRunIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := &refused{wait: 7 * time.Second}
		for _, rejection := range []error{closed, Permanent(closed), fmt.Errorf("deep: %w", closed)} {
			_, err := Do(t.Context(), mustNew(t, Config{}), script(errA, rejection).fn)
			stop := stopOf(t, err)
			require.Equal(t, &Error{Attempts: 2, Reason: Refused, Last: errA, Stop: rejection, Wait: 7 * time.Second, asked: 7 * time.Second}, stop)
			require.False(t, refusal.Is(err))
			require.ErrorIs(t, err, closed)
			wait, ok := refusal.RetryAfter(err)
			require.True(t, ok)
			require.Equal(t, 7*time.Second, wait)
		}
	})
}

func TestTheCallersOwnContextErrorIsNotRetried(t *testing.T) {
	for name, c := range map[string]struct {
		script func(ctx context.Context) []error
		last   func(err []error) error
	}{
		"on a first run": {
			func(ctx context.Context) []error { return []error{ctx.Err()} },
			func(err []error) error { return err[0] }},
		"wrapped": {
			func(ctx context.Context) []error { return []error{fmt.Errorf("db: %w", ctx.Err())} },
			func(err []error) error { return err[0] }},
		"as its cause": {
			func(ctx context.Context) []error { return []error{context.Cause(ctx)} },
			func(err []error) error { return err[0] }},
		"after a real failure": {
			func(ctx context.Context) []error { return []error{errA, ctx.Err()} },
			func([]error) error { return errA }},
		"after a real failure, wrapped": {
			func(ctx context.Context) []error { return []error{errA, fmt.Errorf("db: %w", ctx.Err())} },
			func([]error) error { return errA }},
		"a failure of its own": {
			func(context.Context) []error { return []error{errA, errB} },
			func([]error) error { return errB }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			ended, end := context.WithCancelCause(t.Context())
			end(errShutdown)
			errs := c.script(ended)
			r := mustNew(t, Config{Backoff: Immediate})
			runs := 0
			_, err := Do(ctx, r, func(context.Context) (int, error) {
				if runs++; runs == len(errs) {
					cancel(errShutdown)
				}
				return 0, errs[runs-1]
			})
			require.Equal(t, len(errs), runs)
			stop := stopOf(t, err)
			require.Equal(t, ContextEnded, stop.Reason)
			require.Equal(t, len(errs), stop.Attempts)
			require.Equal(t, c.last(errs), stop.Last, "the last real failure")
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errShutdown)
			require.ErrorIs(t, err, errs[len(errs)-1], "and what fn returned last")
		})
	}
}

func TestRetryIfIsNotAskedAboutTheCallersOwnContextError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	no := func(error) bool { t.Error("asked"); return false }
	_, err := Do(ctx, mustNew(t, Config{RetryIf: no, StopIf: no}), func(ctx context.Context) (int, error) {
		cancel()
		return 0, ctx.Err()
	})
	require.Equal(t, ContextEnded, stopOf(t, err).Reason)
}

func TestAnEndedContextDuringAnImmediateRetry(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r := mustNew(t, Config{Backoff: Immediate, OnRetry: func(context.Context, Scheduled) { cancel(errShutdown) }})
	s := script(errA)
	_, err := Do(ctx, r, s.fn)
	require.Len(t, s.at, 1, "ctx is checked at zero delay too")
	require.ErrorIs(t, err, errShutdown)
	require.ErrorIs(t, err, errA)
	require.Equal(t, 100, r.Config().Budget.(*budget.Ratio).Balance(), "the token is back")
}

func TestReturnLastIsBare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Do(t.Context(), mustNew(t, Config{ReturnLast: true}), script(errA, errA, errB).fn)
		require.Equal(t, errB, err)
		_, err = Do(t.Context(), mustNew(t, Config{ReturnLast: true}), script(errA, &refused{}).fn)
		require.Equal(t, errA, err, "a rejection would not be true")
		_, err = Do(t.Context(), mustNew(t, Config{ReturnLast: true}), script(&throttled{time.Hour}).fn)
		require.Equal(t, &throttled{time.Hour}, err)
	})
}

func TestPermanentIsTransparent(t *testing.T) {
	require.NoError(t, Permanent(nil))
	err := Permanent(&throttled{time.Second})
	require.Equal(t, "throttled", err.Error())
	found, ok := errors.AsType[*throttled](err)
	require.True(t, ok)
	require.Equal(t, time.Second, found.wait)
}

func TestUnlimitedNeedsTime(t *testing.T) {
	r := mustNew(t, Config{Name: "poll", MaxAttempts: Unlimited})
	ctx, cancel := context.WithCancel(t.Context()) // that it can be cancelled is not enough
	defer cancel()
	_, err := Do(ctx, r, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
	require.ErrorContains(t, err, `"poll"`)
	require.False(t, refusal.Is(err))

	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		cfg := Config{MaxAttempts: Unlimited, Backoff: Constant(30 * time.Millisecond), Jitter: None, NoBudget: true}
		s := script(errA)
		_, err := Do(ctx, mustNew(t, cfg), s.fn)
		require.Equal(t, RetryDelayExceedsDeadline, stopOf(t, err).Reason)
		require.Len(t, s.at, 334)

		cfg.MaxElapsed = time.Second
		s = script(errA)
		_, err = Do(t.Context(), mustNew(t, cfg), s.fn)
		require.Equal(t, MaxElapsedExceeded, stopOf(t, err).Reason)
		require.Len(t, s.at, 34)
	})
}

func TestPanicAndGoexitAreNotRetriedAndHoldNothing(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic(errA) }, "Goexit": goexit} {
		t.Run(name, func(t *testing.T) {
			b := budget.MustNewTokens(budget.TokenConfig{Capacity: 10, Clock: newClock()})
			runs := 0
			unwinds(t, func() {
				_, _ = Do(t.Context(), mustNew(t, Config{Backoff: Immediate, Budget: b}), func(context.Context) (int, error) {
					if runs++; runs == 2 {
						leave()
					}
					return 0, errA
				})
			})
			require.Equal(t, 2, runs)
			require.Equal(t, 9, b.Balance(), "the retry was sent")

			unwinds(t, func() { // while a token is reserved
				cfg := Config{Backoff: Immediate, Budget: b, OnRetry: func(context.Context, Scheduled) { leave() }}
				_, _ = Do(t.Context(), mustNew(t, cfg), script(errA).fn)
			})
			require.Equal(t, 9, b.Balance(), "the token is back")
			unwinds(t, func() {
				_, _ = Do(t.Context(), mustNew(t, Config{RetryIf: func(error) bool { leave(); return true }}), script(errA).fn)
			})
		})
	}
}

// list is an error that == panics at, though its type is comparable.
type list struct{ of any }

func (list) Error() string { return "list" }

// leaving is one that says, besides, that the caller went away.
type leaving struct{ list }

func (leaving) Unwrap() error { return context.Canceled }

// A cause that errors.Is would panic at, returned by fn.
func TestUncomparableCause(t *testing.T) {
	r := mustNew(t, Config{Backoff: Immediate})
	for _, cause := range []error{list{[]error{errB}}, leaving{list{[]error{errB}}}} {
		for _, runs := range []int{1, 2} {
			ctx, cancel := context.WithCancelCause(t.Context())
			n := 0
			_, err := Do(ctx, r, func(ctx context.Context) (int, error) {
				if n++; n < runs {
					return 0, errA
				}
				cancel(cause)
				return 0, context.Cause(ctx)
			})
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, runs, n)
			require.ErrorContains(t, err, "list")
		}
	}
}
