package pipeline_test

import (
	"context"
	"testing"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// An attempt that ran is told, also where a guard's Settle panics (a hook's panic, which goes on to the caller).
func TestAnAttemptIsToldThoughASettlePanics(t *testing.T) {
	for name, fn := range map[string]func(context.Context) error{
		"attempt_finished #1":       func(context.Context) error { return nil },
		"attempt_finished #1: down": func(context.Context) error { return errDown },
	} {
		var lines []string
		p := pipeline.For("p").Bulkhead(&rule{settle: func(leaf.Outcome) error { panic("hook") }}).
			Observe(func(_ context.Context, e pipeline.Event) { e.Took = 0; lines = append(lines, line(e)) }).MustBuild()
		require.PanicsWithValue(t, "hook", func() { _ = p.Run(t.Context(), fn) })
		require.Equal(t, []string{"call_started", name, "call_finished: " + pipeline.ErrPanicked.Error()}, lines)
	}
}

// An observer that panics keeps nothing from the others: each sees every call from its start to its end.
func TestAnObserverThatPanicsKeepsNothingFromTheOthers(t *testing.T) {
	for bad := pipeline.CallStarted; bad <= pipeline.GuardRejected; bad++ {
		t.Run(bad.String(), func(t *testing.T) {
			first := func(_ context.Context, e pipeline.Event) {
				if e.Kind == bad {
					panic(bad)
				}
			}
			var kinds []pipeline.Kind
			p := pipeline.For("p").Retry(steady()).Bulkhead(refusesFrom(2, &no{})).Observe(first).MustBuild()
			defer p.Subscribe(func(_ context.Context, e pipeline.Event) { kinds = append(kinds, e.Kind) })()
			require.PanicsWithValue(t, bad, func() { _ = p.Run(t.Context(), func(context.Context) error { return errDown }) })
			require.Equal(t, pipeline.CallStarted, kinds[0])
			require.Equal(t, pipeline.CallFinished, kinds[len(kinds)-1])
			require.Contains(t, kinds, bad)
			starts, ends := 0, 0
			for _, k := range kinds {
				switch k {
				case pipeline.CallStarted:
					starts++
				case pipeline.CallFinished:
					ends++
				}
			}
			require.Equal(t, [2]int{1, 1}, [2]int{starts, ends}, kinds)
		})
	}
}
