package slogx

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
)

// maxKeys bounds what is remembered; lines beyond it count as alike.
const maxKeys = 1024

// key says which lines are alike. All of it is of low cardinality, the names are the program's own.
type key struct {
	pipeline string
	guard    string // of a hook
	what     string // the message
	layer    string
	refusal  string // its type, of a shadow
	reason   retry.Reason
}

// window is one period of lines that are alike, from the first of them.
type window struct {
	ends       int64
	level      slog.Level
	written    int
	suppressed int
}

// held is a window that is over, and had more lines than it wrote.
type held struct {
	key
	window
}

// repeats counts lines that are alike. Nothing here runs by itself: its callers read the time. That is the program's own, whatever
// clocks the pipelines have: it is the log that is spared, and the instants of two clocks cannot be compared. Time that jumped (a
// goroutine enters a test bubble) shows as a window that ends further ahead than two periods: that one is over.
type repeats struct {
	most int
	per  time.Duration

	mu    sync.Mutex
	seen  map[key]window
	swept int64        // no window that ended before it is left
	next  atomic.Int64 // when the first window that held something back ends; math.MaxInt64 = none did
}

func (r *repeats) begin() {
	r.seen = map[key]window{}
	r.next.Store(math.MaxInt64)
}

func (r *repeats) unlimited() bool { return r.most < 1 || r.per <= 0 }

// over says that a period which ends at ends has nothing to do with now any more. A little more than a period ahead is no jump: who
// read the time before the one that began the period may come after it.
func (r *repeats) over(ends, now int64) bool { return now >= ends || (ends-now)/2 > int64(r.per) }

// after saturates: a period may be as long as there is time.
func after(now int64, per time.Duration) int64 {
	if now > 0 && int64(per) > math.MaxInt64-1-now {
		return math.MaxInt64 - 1
	}
	return now + int64(per)
}

// allow says whether a line is to be written, and counts it. Debug is for those who want it all.
func (r *repeats) allow(k key, level slog.Level, at time.Time) bool {
	if level < slog.LevelInfo || r.unlimited() {
		return true
	}
	now := at.UnixNano()
	r.mu.Lock()
	defer r.mu.Unlock()
	w, known := r.seen[k]
	if !known && r.full(now) {
		k = key{what: "pipeline: lines of too many kinds"}
		w, known = r.seen[k]
	}
	if !known || w.suppressed == 0 && r.over(w.ends, now) {
		w = window{ends: after(now, r.per), level: level}
	}
	if w.written < r.most {
		w.written++
		r.seen[k] = w
		return true
	}
	w.suppressed++
	w.level = max(w.level, level)
	r.seen[k] = w
	if w.ends < r.next.Load() {
		r.next.Store(w.ends)
	}
	return false
}

// full says that no other kind of line can be remembered. What is over is swept out at most once a period.
func (r *repeats) full(now int64) bool {
	if len(r.seen) < maxKeys {
		return false
	}
	if r.over(after(r.swept, r.per), now) {
		r.swept = now
		for k, w := range r.seen {
			if w.suppressed == 0 && r.over(w.ends, now) {
				delete(r.seen, k)
			}
		}
	}
	return len(r.seen) >= maxKeys
}

// none says that nothing is held back: one atomic load.
func (r *repeats) none() bool { return r.next.Load() == math.MaxInt64 }

// due says that take may find something.
func (r *repeats) due(now time.Time) bool { return r.over(r.next.Load(), now.UnixNano()) }

// take forgets the windows that are over, and returns those that held something back.
func (r *repeats) take(at time.Time) []held {
	now := at.UnixNano()
	r.mu.Lock()
	defer r.mu.Unlock()
	var done []held
	next := int64(math.MaxInt64)
	for k, w := range r.seen {
		switch {
		case r.over(w.ends, now):
			delete(r.seen, k)
			if w.suppressed > 0 {
				done = append(done, held{k, w})
			}
		case w.suppressed > 0:
			next = min(next, w.ends)
		}
	}
	r.next.Store(next)
	return done
}
