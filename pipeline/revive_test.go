package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// sleepy is a context whose own timer is late: its deadline passes, and it does not notice.
type sleepy struct {
	context.Context
	deadline time.Time
}

func (s sleepy) Deadline() (time.Time, bool) { return s.deadline, true }

// Section 3, DoOr: when the deadline passed, plan B's context lives again, though the caller's own timer is late: fn failed at
// the deadline, by that of a socket, say (F4); or the call ended otherwise, and the deadline passed since.
func TestPlanBLivesAgainOnceTheDeadlineHasPassed(t *testing.T) {
	wait := func(d time.Duration) { <-time.After(d) }
	refuses := func(b pipeline.Builder) pipeline.Builder {
		return b.Bulkhead(&rule{acquire: func(context.Context) error { return &no{} }})
	}
	for name, test := range map[string]struct {
		b    func(pipeline.Builder) pipeline.Builder
		fn   time.Duration
		want pipeline.Disposition
		live bool // it has not passed: ctx itself
	}{
		"fn, at the deadline": {b: nil, fn: time.Second, want: pipeline.Expired},
		"fn, after it":        {b: nil, fn: 2 * time.Second, want: pipeline.Expired},
		"fn, before it":       {b: nil, fn: time.Second - 1, want: pipeline.Failed, live: true},
		"a settle takes longer": {func(b pipeline.Builder) pipeline.Builder {
			return b.Bulkhead(&rule{settle: func(leaf.Outcome) error { wait(time.Second); return nil }})
		}, time.Millisecond, pipeline.Failed, false},
		"an observer takes longer": {func(b pipeline.Builder) pipeline.Builder {
			return b.Observe(func(_ context.Context, e pipeline.Event) {
				if e.Kind == pipeline.CallFinished {
					wait(time.Second)
				}
			})
		}, time.Millisecond, pipeline.Failed, false},
		"a mapper takes longer": {func(b pipeline.Builder) pipeline.Builder {
			return refuses(b).OnRejected(func(context.Context, error) error { wait(time.Second); return nil })
		}, 0, pipeline.Rejected, false},
		"a mapper takes no time": {func(b pipeline.Builder) pipeline.Builder {
			return refuses(b).OnRejected(func(context.Context, error) error { return nil })
		}, 0, pipeline.Rejected, true},
	} {
		for _, late := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					base := context.WithValue(t.Context(), tenant{}, 7)
					ctx, cancel := context.WithTimeout(base, time.Second)
					defer cancel()
					if late {
						ctx = sleepy{base, time.Now().Add(time.Second)}
					}
					b := pipeline.For("p").FallbackTimeout(3 * time.Second)
					if test.b != nil {
						b = test.b(b)
					}
					p := b.MustBuild()
					fn := func(context.Context) (string, error) { wait(test.fn); return "", errDown }
					var plan planB
					_, err := pipeline.DoOr(ctx, p, fn, plan.run)
					require.NoError(t, err)
					require.Equal(t, 1, plan.calls)
					require.True(t, plan.alive)
					require.Equal(t, 7, plan.value)
					if test.live {
						require.LessOrEqual(t, plan.left, time.Second, "ctx itself")
					} else {
						require.Equal(t, 3*time.Second, plan.left)
					}

					again, cancel := context.WithTimeout(base, time.Second)
					defer cancel()
					_, report, _ := pipeline.DoDetailed(again, p, fn)
					require.Equal(t, test.want, report.Disposition)
				})
			})
		}
	}
}

// Skipped when the caller cancelled, also where the call had ended otherwise before.
func TestPlanBIsSkippedWhereTheCallerCancelsAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := pipeline.For("p").Bulkhead(&rule{acquire: func(context.Context) error { return &no{} }}).
		OnRejected(func(context.Context, error) error { cancel(); return nil }).MustBuild()
	var plan planB
	_, err := pipeline.DoOr(ctx, p, func(context.Context) (string, error) { return "", nil }, plan.run)
	require.IsType(t, &no{}, err, "the call's own error")
	require.Zero(t, plan.calls)
}

// A call that stopped before a wait that does not fit has not reached its deadline: plan B gets ctx with what is left.
func TestPlanBOfACallThatStoppedInTimeGetsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		var plan planB
		_, err := pipeline.DoOr(ctx, pipeline.For("p").Retry(steady()).MustBuild(), func(context.Context) (string, error) { return "", errDown }, plan.run)
		require.NoError(t, err)
		require.Equal(t, retry.RetryDelayExceedsDeadline, stopped(t, plan.err).Reason)
		require.Equal(t, 50*time.Millisecond, plan.left)
	})
}

// undated is a context that has a deadline and does not tell it.
type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

func TestPlanBLivesAgainAfterADeadlineThatNobodyKnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := pipeline.For("p").Bulkhead(&rule{acquire: func(context.Context) error { return &no{} }}).
			OnRejected(func(context.Context, error) error { <-time.After(2 * time.Second); return nil }).MustBuild()
		var plan planB
		_, err := pipeline.DoOr(undated{ctx}, p, func(context.Context) (string, error) { return "", nil }, plan.run)
		require.NoError(t, err)
		require.True(t, plan.alive)
		require.Equal(t, time.Second, plan.left)
	})
}
