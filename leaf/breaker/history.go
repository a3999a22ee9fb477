package breaker

// history is what a window holds. Instants never go back, or else the clock has jumped and the history is empty.
type history interface {
	// timed says that record reads its now.
	timed() bool
	// record adds one result that is not neutral.
	record(now int64, r result)
	// held is what the window held right after the last record.
	held() totals
	// at is what it holds at now, after more successes than were recorded. It changes nothing.
	at(now int64, more int) totals
	// credit adds successes that needed no judging, at the time of the last record.
	credit(n int)
	clear()
}

func newHistory(w Window) history {
	if w.kind == countWindow {
		return newRing(w)
	}
	return newSpan(w)
}

func (t *totals) add(r result, n int) {
	t.calls += n
	if r&failed != 0 {
		t.failures += n
	}
	if r&slow != 0 {
		t.slow += n
	}
}
