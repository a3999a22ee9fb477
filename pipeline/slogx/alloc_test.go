package slogx_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/slogx"
	"github.com/stretchr/testify/require"
)

// Where the level is disabled, and where a line is held back, a line costs no allocation.
func TestAllocDisabledLinesAreFree(t *testing.T) {
	off := slog.New(newPad(slog.LevelError + 1))
	every := []slogx.Option{slogx.Every()}
	observe, change, shadow := slogx.Observer(off, every...), slogx.OnChange(off), slogx.OnShadow(off)
	store, reload := slogx.OnStore(off), slogx.OnReload(off)
	events := []pipeline.Event{
		{Kind: pipeline.CallStarted}, {Kind: pipeline.AttemptFinished, Attempt: 1, Err: errDown}, {Kind: pipeline.RetryScheduled, Attempt: 2},
		{Kind: pipeline.GuardRejected, Layer: "bulkhead", Err: errDown}, {Kind: pipeline.RetryStopped, Reason: 1},
		{Kind: pipeline.CallFinished, Disposition: pipeline.Failed, Err: errDown},
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, e := range events {
			observe(t.Context(), e)
		}
		change(breaker.Change{Name: "b", To: breaker.Open, Reason: "forced"})
		shadow(t.Context(), errDown)
		store(t.Context(), leaf.StoreEvent{Name: "b", Kind: "failed", Op: leaf.OpAdmit, Err: errDown})
		reload(errDown)
		reload(nil)
	}))
	heldBack := slogx.Observer(slog.New(newPad(slog.LevelInfo)), slogx.Repeats(1, time.Hour))
	require.Zero(t, testing.AllocsPerRun(100, func() { heldBack(t.Context(), events[len(events)-1]) }), "held back")

	p := pipeline.For("p").Observe(slogx.Observer(slog.New(newPad(slog.LevelInfo)))).MustBuild()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = p.Run(t.Context(), func(context.Context) error { return nil })
	}), "a success at Info")
}

// What a line costs where it is not enabled, held back, and written to nowhere.
func BenchmarkObserver(b *testing.B) {
	failed := pipeline.Event{Kind: pipeline.CallFinished, Time: time.Unix(1, 0), Pipeline: "p", Disposition: pipeline.Failed, Attempt: 3, Err: errDown}
	for _, c := range []struct {
		name    string
		observe func(context.Context, pipeline.Event)
	}{
		{"disabled", slogx.Observer(slog.New(slog.DiscardHandler))},
		{"held back", slogx.Observer(slog.New(newPad(slog.LevelInfo)), slogx.Repeats(1, time.Hour))},
		{"written", slogx.Observer(slog.New(bench{}), slogx.Repeats(0, 0))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.observe(b.Context(), failed)
			}
		})
	}
}

type bench struct{ slog.Handler }

func (bench) Enabled(context.Context, slog.Level) bool  { return true }
func (bench) Handle(context.Context, slog.Record) error { return nil }
