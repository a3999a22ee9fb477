package breaker

import (
	"fmt"
	"time"
)

// Window is what a breaker counts: a value, comparable with ==. The zero Window is Time(10 s). Invalid sizes are found
// by New.
type Window struct {
	kind    windowKind
	calls   int           // of a count window
	span    time.Duration // of a time window
	within  time.Duration // of a count window that is bounded
	bounded bool
}

type windowKind uint8

const (
	defaultWindow windowKind = iota
	countWindow
	timeWindow
)

const (
	maxCalls   = 1 << 16
	bucketsOf  = 10 // of a time window
	defaultFor = 10 * time.Second
)

// Count is the last n calls, n from 1 to 65536.
func Count(n int) Window { return Window{kind: countWindow, calls: n} }

// Time is the calls of the last d, in 10 buckets, d from 10 ns; sliding, and empty after any idle longer than d.
//
// A result is counted for at most d and for more than 0.9 d: whole buckets leave, and the first bucket begins with the
// first result.
func Time(d time.Duration) Window { return Window{kind: timeWindow, span: d} }

// Within is w with none older than d, d positive; for a count window.
func (w Window) Within(d time.Duration) Window {
	w.within, w.bounded = d, true
	return w
}

// String is "count(100)", "count(100) within 1m0s" or "time(10s)".
func (w Window) String() string {
	w = w.filled()
	s := fmt.Sprintf("count(%d)", w.calls)
	if w.kind == timeWindow {
		s = fmt.Sprintf("time(%v)", w.span)
	}
	if w.bounded {
		s += fmt.Sprintf(" within %v", w.within)
	}
	return s
}

// Size is what w counts: so many calls (0 = any number), none older than a time (0 = of any age). Time(d) is 0 calls and d.
func (w Window) Size() (calls int, within time.Duration) {
	w = w.filled()
	if w.kind == timeWindow {
		return 0, w.span
	}
	return w.calls, w.within
}

// filled is w with the default filled in.
func (w Window) filled() Window {
	if w.kind == defaultWindow {
		w.kind, w.span = timeWindow, defaultFor
	}
	return w
}

// want is what would be right, or "" where w is.
func (w Window) want() string {
	switch w = w.filled(); {
	case w.kind == timeWindow && w.bounded:
		return "Within on a count window"
	case w.kind == timeWindow && w.span < bucketsOf:
		return "a time from 10ns"
	case w.kind == countWindow && (w.calls < 1 || w.calls > maxCalls):
		return fmt.Sprintf("a count from 1 to %d", maxCalls)
	case w.bounded && w.within <= 0:
		return "Within a positive time"
	}
	return ""
}
