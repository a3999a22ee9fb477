package breaker

import "time"

// ring is the last n calls, optionally none older than a time.
type ring struct {
	results []result
	times   []int64 // nil where age does not matter
	within  time.Duration
	oldest  int
	last    int64 // the newest instant
	now     totals
}

func newRing(w Window) *ring {
	r := &ring{results: make([]result, w.calls)}
	if w.bounded {
		r.times, r.within = make([]int64, w.calls), w.within
	}
	return r
}

func (h *ring) timed() bool  { return h.times != nil }
func (h *ring) held() totals { return h.now }

// full says that one more result pushes one out.
func (h *ring) full() bool { return h.now.calls == len(h.results) }

// clean says that another success would change nothing: the window is full of them, and they do not age.
func (h *ring) clean() bool { return h.full() && h.now.failures == 0 && h.now.slow == 0 && !h.timed() }

func (h *ring) record(now int64, r result) {
	if h.timed() {
		h.expire(now)
	}
	if h.full() {
		h.drop()
	}
	at := h.index(h.now.calls)
	h.results[at] = r
	if h.timed() {
		h.times[at], h.last = now, now
	}
	h.now.add(r, 1)
}

// index of the i-th call from the oldest.
func (h *ring) index(i int) int {
	if i += h.oldest; i >= len(h.results) {
		i -= len(h.results)
	}
	return i
}

func (h *ring) drop() {
	h.now.add(h.results[h.oldest], -1)
	h.oldest = h.index(1)
}

func (h *ring) expire(now int64) {
	if now < h.last {
		h.clear()
	}
	for h.now.calls > 0 && older(h.times[h.oldest], now, h.within) {
		h.drop()
	}
}

// older says that at is more than d before now, which is not before at. An unsigned difference cannot overflow.
func older(at, now int64, d time.Duration) bool { return uint64(now)-uint64(at) > uint64(d) }

func (h *ring) at(now int64, _ int) totals {
	t := h.now
	if !h.timed() {
		return t
	}
	if now < h.last {
		return totals{}
	}
	for i := 0; t.calls > 0 && older(h.times[h.index(i)], now, h.within); i++ {
		t.add(h.results[h.index(i)], -1)
	}
	return t
}

func (h *ring) clear() { h.now, h.oldest = totals{}, 0 }

// credit has nothing to do: only a clean ring lets successes pass unjudged, and they change nothing.
func (h *ring) credit(int) {}
