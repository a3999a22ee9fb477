package breaker

import "github.com/fairlead/fairlead/leaf"

// model is the breaker as one would write it without a thought for speed: it keeps every result with its time and looks
// through all of them. It shares no code with the machine.
type model struct {
	cfg       Config // with its defaults
	state     State
	forced    bool
	gen       int
	results   []counted
	firstAt   int64 // where the buckets of a time window begin to be counted
	lastAt    int64
	openedAt  int64
	openFor   int64
	openTime  int64
	reopening int
	probes    []*ticket
	successes int
	changes   []Change
}

type counted struct {
	at           int64
	failed, slow bool
}

// ticket is an admission of the model beside the permit that the breaker gave.
type ticket struct {
	gen    int
	state  State
	at     int64
	lease  int64 // 0 = no slot
	settle func(leaf.Outcome)
}

func (m *model) move(to State, reason string) {
	from := m.state
	m.state, m.gen, m.results, m.probes, m.successes = to, m.gen+1, nil, nil, 0
	if to == Closed {
		m.reopening = 0
	}
	if from != to {
		m.changes = append(m.changes, Change{Name: m.cfg.Name, Seq: uint64(len(m.changes) + 1), From: from, To: to, Reason: reason})
	}
}

// window is what counts at now.
func (m *model) window(now int64) []counted {
	rs, w := m.results, m.cfg.Window
	if len(rs) == 0 {
		return nil
	}
	if w.kind == countWindow {
		if w.bounded && now < m.lastAt {
			return nil
		}
		for len(rs) > 0 && w.bounded && now-rs[0].at > int64(w.within) {
			rs = rs[1:]
		}
		return rs[max(0, len(rs)-w.calls):]
	}
	width := int64(w.span) / 10
	bucket := func(at int64) int64 { return (at - m.firstAt) / width }
	if now < m.firstAt+bucket(m.lastAt)*width {
		return nil // the newest bucket has not begun yet: the clock has jumped
	}
	for len(rs) > 0 && bucket(now)-bucket(rs[0].at) >= 10 {
		rs = rs[1:]
	}
	return rs
}

func (m *model) record(now int64, c counted) {
	m.results = m.window(now)
	if len(m.results) == 0 {
		m.firstAt = now
	}
	c.at = max(now, m.lastInBucket(now))
	m.results = append(m.results, c)
	m.lastAt = c.at
	if m.cfg.Window.kind == countWindow {
		m.results = m.window(now)
	}
}

// lastInBucket: a clock that steps back within a bucket leaves the result in that bucket.
func (m *model) lastInBucket(now int64) int64 {
	if len(m.results) == 0 || m.cfg.Window.kind == countWindow {
		return now
	}
	return m.lastAt
}

func (m *model) totals(now int64) (calls, failures, slow int) {
	for _, c := range m.window(now) {
		calls++
		if c.failed {
			failures++
		}
		if c.slow {
			slow++
		}
	}
	return
}

func (m *model) row() (n int) {
	for i := len(m.results) - 1; i >= 0 && m.results[i].failed; i-- {
		n++
	}
	return n
}

func (m *model) thresholdReached(now int64) bool {
	calls, failures, slow := m.totals(now)
	c := m.cfg
	// per mille, so that the model needs no floats: the rates below have at most three decimals
	mille := func(rate float64) int { return int(rate*1000 + 0.5) }
	enough := calls >= c.MinCalls
	return enough && c.FailureRate > 0 && failures*1000 >= mille(c.FailureRate)*calls ||
		c.FailureCount > 0 && failures >= c.FailureCount ||
		!enough && c.Consecutive > 0 && m.row() >= c.Consecutive ||
		enough && c.SlowCall > 0 && slow*1000 >= mille(c.SlowRate)*calls
}

func (m *model) trip(now int64) {
	m.openedAt, m.openTime = now, int64(m.cfg.OpenFor)
	for range m.reopening {
		m.openTime = min(m.openTime*int64(m.cfg.OpenGrowth), int64(m.cfg.MaxOpenFor))
	}
	m.openFor = m.openTime
	if m.cfg.OpenJitter {
		m.openFor = (m.openTime+1)/2 + (m.openTime/2)/4 // Rand is always 0.25
	}
	m.move(Open, "")
}

func (m *model) openLeft(now int64) int64 {
	if now < m.openedAt || now-m.openedAt >= m.openFor {
		return 0
	}
	return m.openFor - (now - m.openedAt)
}

func (m *model) slots(now int64) (n int, wait int64) {
	for _, p := range m.probes {
		if left := p.at + p.lease - now; p.lease > 0 && now >= p.at && left > 0 {
			if n++; n == 1 || left < wait {
				wait = left
			}
		}
	}
	return n, wait
}

// peek is whether an Acquire would be refused, in which state, and the wait.
func (m *model) peek(now int64) (refused bool, s State, wait int64) {
	switch m.state {
	case Open:
		if m.forced {
			return true, Open, 0
		}
		wait = m.openLeft(now)
		return wait > 0, Open, wait
	case HalfOpen:
		n, wait := m.slots(now)
		return m.cfg.ProbeLease != NoLease && n >= m.cfg.Probes, HalfOpen, wait
	}
	return false, Closed, 0
}

func (m *model) acquire(now int64) *ticket {
	if refused, _, _ := m.peek(now); refused {
		return nil
	}
	if m.state == Open {
		m.move(HalfOpen, "")
	}
	t := &ticket{gen: m.gen, state: m.state, at: now}
	if m.state == HalfOpen && m.cfg.ProbeLease != NoLease {
		t.lease = int64(m.cfg.ProbeLease)
		if t.lease == 0 {
			t.lease = m.openTime
		}
		for _, p := range m.probes {
			if now < p.at || now-p.at >= p.lease {
				p.lease = 0 // a slot that was found free stays so, also where the clock jumps back and forth
			}
		}
		m.probes = append(m.probes, t)
	}
	return t
}

func (m *model) settle(now int64, t *ticket, o happened) {
	o.slow = o.slow && m.cfg.SlowCall > 0
	o.neutral = o.neutral || o.cancelled && !o.slow
	if t.gen != m.gen || o.neutral && t.state == Closed {
		return
	}
	if m.state == Closed {
		m.record(now, counted{failed: o.failed, slow: o.slow})
		if !m.forced && m.thresholdReached(now) {
			m.trip(now)
		}
		return
	}
	t.lease = 0
	switch {
	case o.failed:
		m.reopening++
		m.trip(now)
	case o.neutral || o.cancelled:
	default:
		if m.successes++; m.successes >= m.cfg.ProbeSuccesses {
			m.move(Closed, "")
		}
	}
}
