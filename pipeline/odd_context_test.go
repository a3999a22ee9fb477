package pipeline_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// brokenContext panics before anything has begun.
type brokenContext struct{ context.Context }

func (brokenContext) Deadline() (time.Time, bool) { panic("deadline") }

// Nobody hears the end of a call that never started.
func TestACallThatPanicsBeforeItStartsHasNoEnd(t *testing.T) {
	for name, ctx := range map[string]context.Context{"nil": nil, "a broken one": brokenContext{t.Context()}} {
		var heard []string
		p := pipeline.For("p").Observe(hear(&heard, "builder")).MustBuild()
		p.Subscribe(hear(&heard, "subscriber"))
		require.Panics(t, func() { _ = p.Run(ctx, func(context.Context) error { return nil }) }, name)
		require.Empty(t, heard, name)
	}
}

// panickingJudge is an error whose Judge panics.
type panickingJudge struct{}

func (panickingJudge) Error() string                   { return "bad" }
func (panickingJudge) Judge(leaf.Outcome) leaf.Outcome { panic("judge") }

func TestATimeIsCountedOnceWhereAJudgePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := &rule{}
		p := pipeline.For("p").Retry(steady()).Breaker(outer).BreakerOutsideRetry().Timeout(limitOf(time.Minute)).MustBuild()
		require.PanicsWithValue(t, "judge", func() {
			_ = p.Run(t.Context(), func(context.Context) error { <-time.After(50 * time.Millisecond); return panickingJudge{} })
		})
		require.Len(t, outer.told, 1)
		require.Equal(t, 50*time.Millisecond, outer.told[0].Took)
	})
}

// Section 4, row "start", and DoOr: a call whose context is over already is the caller's end, whatever that says of itself: no
// retry has stopped, though the cause be another call's stop (as in an errgroup), and there is no plan B for who went away.
func TestACallUnderAContextThatIsOverWasCancelled(t *testing.T) {
	caused, cancel := context.WithCancelCause(t.Context())
	cancel(&retry.Error{Attempts: 3, Reason: retry.AttemptsExhausted, Last: errDown})
	uncomparable := newEndless()
	uncomparable.end(list{[]error{errDown}})
	for how, ctx := range map[string]context.Context{
		"by another call's stop": caused, "with an error that == panics at": uncomparable, "with a new error each time": anew{t.Context()},
	} {
		layered(func(name string, b pipeline.Builder) {
			for retried, b := range map[string]pipeline.Builder{" alone": b, " with a retry": b.Retry(steady())} {
				what := how + ", " + name + retried
				p := b.Observe(func(_ context.Context, e pipeline.Event) {
					require.Contains(t, []pipeline.Kind{pipeline.CallStarted, pipeline.CallFinished}, e.Kind, what)
				}).MustBuild()
				fn := func(context.Context) (int, error) { t.Error("ran: " + what); return 1, nil }
				_, r, err := pipeline.DoDetailed(ctx, p, fn)
				require.Error(t, err, what)
				require.Equal(t, pipeline.Cancelled, r.Disposition, what)
				require.Zero(t, r.Reason, what)
				_, err = pipeline.DoOr(ctx, p, fn, func(context.Context, error) (int, error) { t.Error("plan B: " + what); return 1, nil })
				require.Error(t, err, what)
			}
		})
	}
}

// anew is a context that is over, and makes a new Err for whoever asks.
type anew struct{ context.Context }

func (anew) Err() error { return fmt.Errorf("shut down: %w", context.Canceled) }
