package pipeline_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// hear is an observer that keeps what it is told, each event behind the listener's name.
func hear(heard *[]string, name string) func(context.Context, pipeline.Event) {
	return func(_ context.Context, e pipeline.Event) { *heard = append(*heard, name+" "+e.Kind.String()) }
}

func TestSubscribersAreToldAfterTheBuildersObserver(t *testing.T) {
	var heard []string
	p := pipeline.For("p").Observe(hear(&heard, "builder")).MustBuild()
	p.Subscribe(hear(&heard, "first"))
	p.Subscribe(hear(&heard, "second"))
	require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
	require.Equal(t, []string{
		"builder call_started", "first call_started", "second call_started",
		"builder attempt_finished", "first attempt_finished", "second attempt_finished",
		"builder call_finished", "first call_finished", "second call_finished",
	}, heard)
}

func TestASubscriberStaysThroughAnUpdateAndLeavesOnce(t *testing.T) {
	var heard []string
	ok := func(context.Context) error { return nil }
	p := pipeline.For("p").Observe(hear(&heard, "old")).MustBuild()
	cancel := p.Subscribe(hear(&heard, "subscriber"))
	again := p.Subscribe(hear(&heard, "subscriber"))
	require.NoError(t, p.Update(pipeline.For("p")))
	again()
	again() // one subscription, however often it is cancelled
	require.NoError(t, p.Run(t.Context(), ok))
	require.Equal(t, []string{"subscriber call_started", "subscriber attempt_finished", "subscriber call_finished"}, heard)
	cancel()
	heard = nil
	require.NoError(t, p.Run(t.Context(), ok))
	require.Empty(t, heard)
	require.NoError(t, p.Update(pipeline.For("p").Observe(hear(&heard, "new"))))
	require.NoError(t, p.Run(t.Context(), ok))
	require.Len(t, heard, 3)
}

// A call is seen from its start to its end or not at all.
func TestASubscriberSeesWholeCallsOnly(t *testing.T) {
	var heard []string
	var p pipeline.Pipeline // the zero Pipeline, too
	var cancel func()
	require.NoError(t, p.Run(t.Context(), func(context.Context) error {
		cancel = p.Subscribe(hear(&heard, "late"))
		return nil
	}))
	require.Empty(t, heard, "the call had begun before")
	require.NoError(t, p.Run(t.Context(), func(context.Context) error {
		cancel()
		return nil
	}))
	require.Equal(t, []string{"late call_started", "late attempt_finished", "late call_finished"}, heard)
}

func TestANilSubscriberIsNobody(t *testing.T) {
	p := pipeline.For("p").MustBuild()
	p.Subscribe(nil)()
	require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
}

func TestSubscribeUpdateAndCallsAtTheSameTime(t *testing.T) {
	p := pipeline.For("p").MustBuild()
	var started, finished atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				cancel := p.Subscribe(func(_ context.Context, e pipeline.Event) {
					switch e.Kind {
					case pipeline.CallStarted:
						started.Add(1)
					case pipeline.CallFinished:
						finished.Add(1)
					}
				})
				if err := p.Update(pipeline.For("p")); err != nil {
					t.Error(err)
				}
				_ = p.Run(t.Context(), func(context.Context) error { return errDown })
				cancel()
			}
		})
	}
	wg.Wait()
	require.GreaterOrEqual(t, started.Load(), int64(800), "each has heard at least its own call")
	require.Equal(t, started.Load(), finished.Load())
	before := started.Load()
	require.Error(t, p.Run(t.Context(), func(context.Context) error { return errDown }))
	require.Equal(t, before, started.Load(), "all have left")
}

func TestLayersAreWhatTheBuilderWasGiven(t *testing.T) {
	total, attempt := timeout.MustNew(timeout.Config{Name: "t", Limit: 2}), timeout.MustNew(timeout.Config{Name: "a", Limit: 1})
	r, b, own := retry.MustNew(retry.Config{Name: "r"}), breaker.MustNew(breaker.Config{Name: "b"}), &rule{}
	for _, c := range []struct {
		p    *pipeline.Pipeline
		want []any
	}{
		{pipeline.For("p").Timeout(total).Retry(r).Breaker(b).With(own).AttemptTimeout(attempt).MustBuild(), []any{total, r, b, own, attempt}},
		{pipeline.For("p").Retry(r).Breaker(b).BreakerOutsideRetry().MustBuild(), []any{b, r}},
		{&pipeline.Pipeline{}, nil},
	} {
		var got []any
		var layers []pipeline.Layer
		for l, behind := range c.p.Layers() {
			got, layers = append(got, behind), append(layers, l)
		}
		require.Equal(t, c.want, got)
		require.Equal(t, c.p.Describe().Layers, layers)
		for n := range got { // whoever has found what he looks for stops
			seen := 0
			for range c.p.Layers() {
				if seen++; seen == n+1 {
					break
				}
			}
			require.Equal(t, n+1, seen)
		}
	}
}

// A subscriber that panics is as a Builder's observer that does: the call's guards are settled.
func TestASubscriberThatPanicsLeavesNothingHeld(t *testing.T) {
	g := &rule{}
	p := pipeline.For("p").With(g).MustBuild()
	p.Subscribe(func(_ context.Context, e pipeline.Event) {
		if e.Kind == pipeline.AttemptFinished {
			panic(errors.ErrUnsupported)
		}
	})
	require.PanicsWithError(t, errors.ErrUnsupported.Error(), func() {
		_ = p.Run(t.Context(), func(context.Context) error { return nil })
	})
	require.Len(t, g.told, 1)
}
