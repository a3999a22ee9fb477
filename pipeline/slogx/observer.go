package slogx

import (
	"context"
	"log/slog"
	"time"

	"github.com/fairlead/fairlead/pipeline"
)

// Observer is for Builder.Observe and Pipeline.Subscribe; one may serve any number of pipelines, which then share the counting of
// repeats. l nil = slog.Default. A line's time is the event's, on the pipeline's clock.
//
// Attributes: pipeline; operation, where the call has one; attempts (the runs of fn; attempt in lines of [Every]); took; delay, wait;
// layer; reason; error. What does not apply is left out.
func Observer(l *slog.Logger, opts ...Option) func(ctx context.Context, e pipeline.Event) {
	return newWriter(l, opts).event
}

func (w *writer) event(ctx context.Context, e pipeline.Event) {
	if e.Kind != pipeline.CallFinished && !w.every {
		return
	}
	defer survive()
	w.flush(ctx, e.Time)
	level := w.level(e)
	if !w.enabled(ctx, level) {
		return
	}
	k := key{pipeline: e.Pipeline, what: message(e), layer: e.Layer, reason: e.Reason}
	if !w.repeats.allow(k, level, time.Now()) {
		return
	}
	w.write(ctx, e.Time, level, k.what, w.attrs(e)...)
}

// attrs is what a line says, in a fixed order.
func (w *writer) attrs(e pipeline.Event) []slog.Attr {
	attrs := make([]slog.Attr, 1, 9)
	attrs[0] = slog.String("pipeline", e.Pipeline)
	if e.Operation != "" {
		attrs = append(attrs, slog.String("operation", e.Operation))
	}
	switch {
	case e.Kind == pipeline.CallFinished:
		attrs = append(attrs, slog.Int("attempts", e.Attempt), slog.Duration("took", e.Took))
	case e.Kind == pipeline.AttemptFinished:
		attrs = append(attrs, slog.Int("attempt", e.Attempt), slog.Duration("took", e.Took))
	case e.Attempt > 0:
		attrs = append(attrs, slog.Int("attempt", e.Attempt))
	}
	if e.Kind == pipeline.RetryScheduled {
		attrs = append(attrs, slog.Duration("delay", e.Delay))
	}
	if e.Layer != "" {
		attrs = append(attrs, slog.String("layer", e.Layer))
	}
	if e.Reason != 0 {
		attrs = append(attrs, slog.String("reason", e.Reason.String()))
	}
	if e.Wait > 0 {
		attrs = append(attrs, slog.Duration("wait", e.Wait))
	}
	return w.withError(attrs, e.Err)
}
