package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
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
