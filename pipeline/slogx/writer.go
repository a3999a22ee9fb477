package slogx

import (
	"context"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/fairlead/fairlead/pipeline"
)

// longest is how many bytes of an error's text are written.
const longest = 512

// writer is a logger with what was asked of it.
type writer struct {
	logger    *slog.Logger // nil = slog.Default
	every     bool
	level     func(pipeline.Event) slog.Level
	errorText func(error) string
	repeats   repeats
}

func newWriter(l *slog.Logger, opts []Option) *writer {
	w := &writer{logger: l, level: severity, errorText: error.Error, repeats: repeats{most: 5, per: time.Minute}}
	for _, o := range opts {
		if o != nil {
			o(w)
		}
	}
	w.repeats.begin()
	return w
}

// handler asks for slog.Default at each line, so that a later SetDefault counts.
func (w *writer) handler() slog.Handler {
	if w.logger == nil {
		return slog.Default().Handler()
	}
	return w.logger.Handler()
}

func (w *writer) enabled(ctx context.Context, level slog.Level) bool {
	return w.handler().Enabled(ctx, level)
}

// write hands a line over. Its source is left out: it would always be this file. No lock is held: a handler may log, and may run
// calls of its own.
func (w *writer) write(ctx context.Context, at time.Time, level slog.Level, msg string, attrs ...slog.Attr) {
	r := slog.NewRecord(at, level, msg, 0)
	r.AddAttrs(attrs...)
	_ = w.handler().Handle(ctx, r) // as slog.Logger does: there is nobody to tell
}

// flush writes what the count of held back lines is, for those whose period is over. at is the lines' time, not what decides.
func (w *writer) flush(ctx context.Context, at time.Time) {
	if w.repeats.none() {
		return
	}
	if now := time.Now(); w.repeats.due(now) {
		w.summarize(ctx, at, w.repeats.take(now))
	}
}

// summarize writes a line for each. They are counted no more, so that a handler which panics, or exits its goroutine, must lose no
// line but its own.
func (w *writer) summarize(ctx context.Context, at time.Time, all []held) {
	defer func() {
		_ = recover()
		if len(all) > 0 {
			w.summarize(ctx, at, all)
		}
	}()
	for len(all) > 0 {
		next := all[0]
		all = all[1:]
		w.summary(ctx, at, next)
	}
}

func (w *writer) summary(ctx context.Context, at time.Time, held held) {
	if !w.enabled(ctx, held.level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	add("pipeline", held.pipeline)
	add("guard", held.guard)
	attrs = append(attrs, slog.String("line", held.what))
	add("layer", held.layer)
	add("refusal", held.refusal)
	add("reason", held.reason.String())
	attrs = append(attrs, slog.Int("suppressed", held.suppressed), slog.Duration("per", w.repeats.per))
	w.write(ctx, at, held.level, "lines suppressed", attrs...)
}

// withError appends the error's text, if there is one.
func (w *writer) withError(attrs []slog.Attr, err error) []slog.Attr {
	if err == nil {
		return attrs
	}
	if text := w.text(err); text != "" {
		attrs = append(attrs, slog.String("error", text))
	}
	return attrs
}

// text is what may be written of err: bounded, and also where its Error method panics, as a typed nil's does.
func (w *writer) text(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("(a %T whose text cannot be had)", err)
		}
	}()
	return bounded(w.errorText(err))
}

func bounded(text string) string {
	if len(text) <= longest {
		return text
	}
	end := longest
	for end > longest-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:end], len(text))
}

// survive keeps a logger's panic from the call.
func survive() { _ = recover() }
