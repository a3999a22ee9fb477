package slogx

import (
	"log/slog"
	"time"

	"github.com/fairlead/fairlead/pipeline"
)

// Option changes what is written.
type Option func(*writer)

// Every writes each event, not the call's end alone. Hooks take no notice of it.
func Every() Option {
	return func(w *writer) { w.every = true }
}

// Level replaces the package's table of levels for events. nil keeps the table. Hooks take no notice of it. It must be safe for
// concurrent use and runs on the caller's goroutine, for each event that would be a line.
func Level(of func(e pipeline.Event) slog.Level) Option {
	return func(w *writer) {
		if of != nil {
			w.level = of
		}
	}
}

// ErrorText is what is written of an error, up to its first 512 bytes; nil = its Error(). It is never asked about nil and must be
// safe for concurrent use. "" leaves the attribute out.
//
//	slogx.ErrorText(func(err error) string { return fmt.Sprintf("%T", err) }) // the type alone
func ErrorText(of func(err error) string) Option {
	return func(w *writer) {
		if of != nil {
			w.errorText = of
		}
	}
}

// Repeats writes at most so many lines that are alike per period, then one that counts the rest. Default: 5 per minute.
// most < 1 or per <= 0 = every line. per is real time (virtual in a test bubble), never a clockwork.FakeClock's.
func Repeats(most int, per time.Duration) Option {
	return func(w *writer) { w.repeats.most, w.repeats.per = most, per }
}
