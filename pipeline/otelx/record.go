package otelx

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/pipeline"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// record counts one event. e is a pointer since it is copied often enough on its way here.
func (t *Telemetry) record(ctx context.Context, s *series, e *pipeline.Event) {
	switch e.Kind {
	case pipeline.CallFinished:
		t.instruments.duration.Record(ctx, e.Took.Seconds(), s.ofCall(e.Disposition, e.Reason)...)
	case pipeline.AttemptFinished:
		t.instruments.attempts.Add(ctx, 1, s.ofAttempt(e.Err == nil)...)
		if !t.cfg.NoSpanEvents {
			t.spanEvent(ctx, s, e)
		}
	case pipeline.GuardRejected:
		_, stored := errors.AsType[*leaf.StoreError](e.Err)
		t.instruments.rejections.Add(ctx, 1, s.ofRejection(e.Layer, stored)...)
	}
}

// spanEvent tells the caller's span of an attempt.
func (t *Telemetry) spanEvent(ctx context.Context, s *series, e *pipeline.Event) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attrs := append(make([]attribute.KeyValue, 0, 6), s.name, attemptNumber.Int(e.Attempt), attemptDuration.Float64(e.Took.Seconds()))
	if e.Err == nil {
		attrs = append(attrs, succeeded)
	} else {
		attrs = append(attrs, failed, errorType.String(fmt.Sprintf("%T", e.Err)))
		if text := t.text(e.Err); text != "" {
			attrs = append(attrs, errorMessage.String(text))
		}
	}
	span.AddEvent("resilience.attempt", trace.WithTimestamp(e.Time), trace.WithAttributes(attrs...))
}

// longest is how many bytes of an error's text are written.
const longest = 512

// text is what may be written of err. A panic is no message: telling of a call must not end it.
func (t *Telemetry) text(err error) (text string) {
	if t.cfg.ErrorText == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	text = t.cfg.ErrorText(err)
	if len(text) <= longest {
		return text
	}
	end := longest
	for end > longest-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
