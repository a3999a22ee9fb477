package breaker

import (
	"math"
	"time"
)

// The machine's pure reads.

// peek is what admit would refuse with.
func (m *machine) peek(p *policy, at *moment) (e OpenError, refused bool) {
	switch m.state {
	case Open:
		e = OpenError{State: Open, Cause: m.opening.cause}
		e.Wait, refused = m.refuses(at)
	case HalfOpen:
		if p.ProbeLease == NoLease {
			break
		}
		var out int
		e = OpenError{State: HalfOpen, Cause: m.opening.cause}
		out, e.Wait = m.out(at.now())
		refused = out >= p.Probes
	}
	return e, refused
}

// out is how many probes hold a slot, and how long until the first of them loses it.
func (m *machine) out(now int64) (n int, next time.Duration) {
	for _, l := range m.leases {
		left := remains(l.since, l.length, now)
		if left == 0 {
			continue
		}
		if n++; n == 1 || left < next {
			next = left
		}
	}
	return n, next
}

// snapshot is everything that can be seen at now, with the successes that the tally has counted.
func (m *machine) snapshot(now int64, counted int) Snapshot {
	s := Snapshot{State: m.state, Forced: m.forced, Reason: m.reason, ProbeSuccesses: m.successes, Trip: m.lastTrip.why}
	if m.reason != "" {
		s.Since = ago(m.moved, now)
	}
	if s.Trip != "" {
		s.TripAgo = ago(m.lastTrip.at, now)
	}
	switch m.state {
	case Closed:
		t := m.history.at(now, counted)
		s.Calls, s.Failures, s.Slow = t.calls, t.failures, t.slow
		if t.calls > 0 {
			s.FailureRate = float64(t.failures) / float64(t.calls)
		}
	case Open:
		if m.forced {
			break
		}
		if s.Wait = m.opening.left(now); s.Wait == 0 {
			s.State = HalfOpen
		}
	case HalfOpen:
		s.Probes, _ = m.out(now)
	}
	return s
}

// ago is the time from at to now, at least 1 ns: 0 means never. A clock that has jumped back knows nothing longer.
func ago(at, now int64) time.Duration {
	return time.Duration(max(1, min(uint64(max(now, at))-uint64(at), math.MaxInt64)))
}
