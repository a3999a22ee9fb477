package breaker

// span is the calls of a time, in buckets. The newest bucket begins at start; a window that was empty begins anew with
// its next result, so that this one is counted for the whole time.
type span struct {
	width   int64 // of a bucket, rounded down: nothing may outlive the window
	start   int64
	newest  int
	buckets [bucketsOf]totals
	now     totals
}

func newSpan(w Window) *span { return &span{width: int64(w.span / bucketsOf)} }

func (h *span) timed() bool  { return true }
func (h *span) held() totals { return h.now }

func (h *span) record(now int64, r result) {
	h.advance(now)
	h.buckets[h.newest].add(r, 1)
	h.now.add(r, 1)
}

func (h *span) credit(n int) {
	h.buckets[h.newest].add(succeeded, n)
	h.now.add(succeeded, n)
}

// passed is how many buckets have begun since the newest; all of them where the window holds nothing any more.
func (h *span) passed(now int64) int64 {
	if h.now.calls == 0 || now < h.start {
		return bucketsOf
	}
	return int64(min((uint64(now)-uint64(h.start))/uint64(h.width), bucketsOf))
}

func (h *span) advance(now int64) {
	n := h.passed(now)
	if n == bucketsOf {
		h.clear()
		h.start = now
		return
	}
	for range n {
		h.newest = (h.newest + 1) % bucketsOf
		gone := &h.buckets[h.newest]
		h.now = h.now.minus(*gone)
		*gone = totals{}
	}
	h.start += n * h.width
}

func (h *span) at(now int64, more int) totals {
	n := h.passed(now)
	if n == bucketsOf {
		return totals{}
	}
	t := h.now
	for i := range n {
		t = t.minus(h.buckets[(h.newest+1+int(i))%bucketsOf])
	}
	t.add(succeeded, more)
	return t
}

func (t totals) minus(u totals) totals {
	return totals{calls: t.calls - u.calls, failures: t.failures - u.failures, slow: t.slow - u.slow}
}

func (h *span) clear() { *h = span{width: h.width} }

// current is the time of the newest bucket.
func (h *span) current() (start, width int64) { return h.start, h.width }
