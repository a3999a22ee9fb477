package leaf_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// takes is a callback that ignores its context, takes d and then returns err.
func takes(d time.Duration, err error) func(context.Context) (int, error) {
	return func(context.Context) (int, error) {
		<-time.After(d)
		return 1, err
	}
}

func TestDoVerdicts(t *testing.T) {
	for _, row := range []struct {
		what     string
		cancel   time.Duration // 0 = never
		deadline time.Duration // 0 = none
		takes    time.Duration
		err      error
		want     leaf.Verdict
	}{
		{what: "success", takes: 1, want: leaf.Returned},
		{what: "failure", takes: 1, err: errWork, want: leaf.Returned},
		{what: "success after the caller went away", cancel: 1, takes: 2, want: leaf.Returned},
		{what: "success after the deadline", deadline: 1, takes: 2, want: leaf.Returned},
		{what: "failure after the caller went away", cancel: 1, takes: 2, err: errWork, want: leaf.CallerCancelled},
		{what: "failure after the deadline", deadline: 1, takes: 2, err: errWork, want: leaf.CallerExpired},
		{what: "failure at the deadline", deadline: 2, takes: 2, err: errWork, want: leaf.CallerExpired},
		{what: "failure before the deadline", deadline: 2, takes: 1, err: errWork, want: leaf.Returned},
		{what: "cancelled, then expired", cancel: 1, deadline: 2, takes: 3, err: errWork, want: leaf.CallerCancelled},
		{what: "expired, then cancelled", cancel: 2, deadline: 1, takes: 3, err: errWork, want: leaf.CallerExpired},
		{what: "a refusal after the deadline", deadline: 1, takes: 2, err: refusal{}, want: leaf.Ignored},
	} {
		t.Run(row.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if row.deadline > 0 {
					c, cancel := context.WithTimeout(ctx, row.deadline*time.Second)
					defer cancel()
					ctx = c
				}
				if row.cancel > 0 {
					c, cancel := context.WithCancelCause(ctx)
					defer cancel(nil)
					timer := time.AfterFunc(row.cancel*time.Second, func() { cancel(errCause) })
					defer timer.Stop()
					ctx = c
				}
				var g tally
				_, err := leaf.Do(ctx, &g, takes(row.takes*time.Second, row.err))
				require.Equal(t, row.err, err)
				o := g.only(t)
				require.Equal(t, row.want, o.Verdict)
				require.Equal(t, row.err, o.Err)
			})
		})
	}
}

// late is a context whose timer has not noticed yet that the deadline passed.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

// The end instant decides, not the timer.
func TestDoLateTimerIsExpiredAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			left time.Duration
			want leaf.Verdict
		}{{time.Second + 1, leaf.Returned}, {time.Second, leaf.CallerExpired}, {time.Second - 1, leaf.CallerExpired}} {
			var g tally
			_, err := leaf.Do(late{t.Context(), time.Now().Add(row.left)}, &g, takes(time.Second, errWork))
			require.Equal(t, errWork, err)
			require.Equal(t, row.want, g.only(t).Verdict, row.left)
		}
	})
}

// A deadline that has passed is not "no deadline".
func TestDoGivenIsPositiveWhereThereIsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, left := range []time.Duration{0, -time.Hour} {
			var g tally
			_, _ = leaf.Do(late{t.Context(), time.Now().Add(left)}, &g, succeed)
			require.Equal(t, time.Duration(1), g.only(t).Given)
		}
	})
}

func TestDoTookAndGiven(t *testing.T) {
	slow := func(context.Context) error { <-time.After(time.Second); return nil }
	synctest.Test(t, func(t *testing.T) {
		expiring, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		plain := tally{acquire: slow}
		_, _ = leaf.Do(t.Context(), &plain, takes(2*time.Second, nil))
		require.Equal(t, leaf.Outcome{}, plain.only(t), "nobody asked, and no deadline")

		timed := timedTally{tally{acquire: slow}}
		_, _ = leaf.Do(t.Context(), &timed, takes(2*time.Second, nil))
		require.Equal(t, leaf.Outcome{Took: 2 * time.Second}, timed.only(t), "the time inside the callback alone")

		before, _ := expiring.Deadline()
		left := time.Until(before)
		given := tally{acquire: slow}
		_, _ = leaf.Do(expiring, &given, takes(2*time.Second, errWork))
		require.Equal(t, leaf.Outcome{Err: errWork, Took: 2 * time.Second, Given: left}, given.only(t),
			"Given counts from before the guard was asked")
	})
}

// wanting asks for Took by its answer, not by having the method.
type wanting struct {
	tally
	wants bool
}

func (w *wanting) WantsTook() bool { return w.wants }

func TestDoAsksTimedForItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, wants := range []bool{false, true} {
			g := wanting{wants: wants}
			_, _ = leaf.Do(t.Context(), &g, takes(time.Second, nil))
			require.Equal(t, wants, g.only(t).Took == time.Second)
		}
	})
}

func TestDoTookOfAPanic(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var g tally
				wantUnwound(t, how, func() {
					_, _ = leaf.Do(ctx, &g, func(context.Context) (int, error) {
						<-time.After(time.Second)
						end()
						return 0, nil
					})
				})
				require.Equal(t, leaf.Outcome{Verdict: leaf.Panicked, Took: time.Second, Given: time.Minute}, g.only(t))
			})
		})
	}
}

func TestDoNotRunKnowsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errCause)
		defer cancel()
		g := tally{acquire: func(context.Context) error { <-time.After(time.Minute); return nil }}
		_, err := leaf.Do(ctx, &g, succeed)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errCause)
		require.Equal(t, leaf.Outcome{Verdict: leaf.NotRun, Err: err, Given: time.Second}, g.only(t))
	})
}

// over is a context that ends with an error of its own.
type over struct {
	context.Context
	err error
}

func (c *over) Err() error { return c.err }

// What wraps DeadlineExceeded is a deadline, as in a pipeline; what is uncomparable is none, and panics nowhere.
func TestDoContextWithAnErrOfItsOwn(t *testing.T) {
	for _, row := range []struct {
		err  error
		want leaf.Verdict
	}{
		{fmt.Errorf("rpc: %w", context.DeadlineExceeded), leaf.CallerExpired}, {errWork, leaf.CallerCancelled},
		{list{[]error{errWork}}, leaf.CallerCancelled},
	} {
		ctx := &over{Context: t.Context()}
		var g tally
		_, err := leaf.Do(ctx, &g, func(context.Context) (int, error) {
			ctx.err = row.err
			return 0, errWork
		})
		require.Equal(t, errWork, err)
		require.Equal(t, row.want, g.only(t).Verdict, row.err)
	}
}

type list struct{ of any }

func (list) Error() string { return "list" }
