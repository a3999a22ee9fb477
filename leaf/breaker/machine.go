package breaker

import (
	"fmt"
	"slices"
	"time"
)

// machine is the breaker's state, and apply its only transition function: state, event and instant give the next state.
// It knows no lock, no clock and no hook.
type machine struct {
	state  State
	forced bool

	// serial numbers the generations and the probes in one sequence, so that no token ever repeats. first is the present
	// generation's: a closed circuit's permits all carry it, a half-open episode's carry it or a later one.
	serial, first uint64

	history history // closed: what counts
	row     int     // closed: failures in a row
	judged  bool    // closed: the history was judged by the present policy

	opening   opening // open and half-open: the last opening
	reopened  int     // openings since the last close, less one
	leases    []lease // half-open
	successes int     // half-open

	seq    uint64 // transitions so far
	change Change // the last of them
	reason string // of the last change of state or force
	moved  int64  // when that was
	lastTrip
}

// lastTrip is the last opening that was not forced, for people to read.
type lastTrip struct {
	why string // "" = never
	at  int64
}

// event is what can happen to a machine.
type event struct {
	kind  eventKind
	token uint64  // settle
	is    result  // settle
	err   error   // settle: what made it a failure
	old   *Window // update: the window so far
}

type eventKind uint8

const (
	admit eventKind = iota
	settle
	forceOpen
	forceClosed
	auto
	reset
	update
)

// answer is what an event gives besides the next state.
type answer struct {
	token   uint64     // admit: of the permit
	refused *OpenError // admit: why, without the name; nil = admitted
	changed bool       // the machine's last change is this event's
}

func newMachine(p *policy) machine {
	return machine{serial: 1, first: 1, history: newHistory(p.Window)}
}

func (m *machine) apply(p *policy, e event, at *moment) (a answer) {
	before := m.seq
	switch e.kind {
	case admit:
		a = m.admit(p, at)
	case settle:
		m.settle(p, e, at)
	case forceOpen:
		m.forceOpen(p, at)
	case forceClosed:
		m.forceClosed(p, at)
	case auto:
		if m.forced {
			m.close(p, at, "automatic again")
		}
	case reset:
		m.close(p, at, "reset")
	case update:
		m.judged = false
		if p.Window != *e.old {
			m.history, m.row = newHistory(p.Window), 0
		}
	}
	a.changed = m.seq != before
	return a
}

// word is the generation and the state in one: while closed it is the token of every permit.
func (m *machine) word() uint64 { return token(m.first, m.state) }

func (m *machine) admit(p *policy, at *moment) answer {
	if e, refused := m.peek(p, at); refused {
		refusal := e // escapes here alone
		return answer{refused: &refusal}
	}
	if m.state == Open {
		reason := "open time is over"
		if at.now() < m.opening.since {
			reason = "clock went back"
		}
		m.enter(p, at, HalfOpen, reason)
	}
	if m.state == Closed || p.ProbeLease == NoLease {
		return answer{token: m.word()}
	}
	m.dropLeases(at.now())
	m.serial++
	m.leases = append(m.leases, lease{serial: m.serial, since: at.now(), length: p.lease(m.opening.openTime)})
	return answer{token: token(m.serial, HalfOpen)}
}

// refuses says whether an open circuit refuses, and for how long.
func (m *machine) refuses(at *moment) (wait time.Duration, refused bool) {
	if m.forced {
		return 0, true
	}
	wait = m.opening.left(at.now())
	return wait, wait > 0
}

// dropLeases frees the slots whose lease is over.
func (m *machine) dropLeases(now int64) {
	m.leases = slices.DeleteFunc(m.leases, func(l lease) bool { return remains(l.since, l.length, now) == 0 })
}

func (m *machine) settle(p *policy, e event, at *moment) {
	switch {
	case !ofGeneration(m.word(), e.token):
	case m.state == Closed:
		m.record(p, e, at)
	case m.state == HalfOpen:
		m.probed(p, e, at)
	}
}

// record counts a result of a closed circuit and opens it at a threshold.
func (m *machine) record(p *policy, e event, at *moment) {
	if e.is == neutral {
		return
	}
	var now int64
	if m.history.timed() {
		now = at.now()
	}
	m.history.record(now, e.is)
	m.row++
	if e.is&failed == 0 {
		m.row = 0
	}
	m.judged = true
	if m.forced {
		return
	}
	held := m.history.held()
	m.row = min(m.row, held.calls) // what has left the window is no longer part of the row
	if reason, trip := p.trips(held, m.row); trip {
		m.trip(p, e, at, reason, 0)
	}
}

// probed takes a probe's result: neutral gives the slot back and says nothing.
func (m *machine) probed(p *policy, e event, at *moment) {
	m.giveBack(tokenSerial(e.token))
	switch {
	case e.is&failed != 0:
		m.trip(p, e, at, "probe failed", m.reopened+1) // cannot overflow: an opening lasts at least 1 ns
	case e.is&succeeded != 0:
		if m.successes++; m.successes >= p.ProbeSuccesses {
			m.close(p, at, plural(m.successes, "probe")+" succeeded")
		}
	}
}

func (m *machine) giveBack(serial uint64) {
	m.leases = slices.DeleteFunc(m.leases, func(l lease) bool { return l.serial == serial })
}

// trip opens the circuit for its time. It changes nothing before it has asked the clock and Rand: these are the
// program's own and may panic.
func (m *machine) trip(p *policy, e event, at *moment, reason string, reopened int) {
	openTime := p.openTime(reopened)
	o := opening{since: at.now(), wait: p.jittered(openTime), openTime: openTime, cause: e.err}
	m.opening, m.reopened, m.lastTrip = o, reopened, lastTrip{reason, o.since}
	m.enter(p, at, Open, reason)
}

func (m *machine) forceOpen(p *policy, at *moment) {
	if m.forced && m.state == Open {
		return
	}
	at.now() // before anything changes, as in trip
	m.opening, m.forced = opening{forced: true}, true
	m.enter(p, at, Open, "forced")
}

// close closes fresh.
func (m *machine) close(p *policy, at *moment, reason string) {
	at.now()
	m.opening, m.forced = opening{}, false
	m.enter(p, at, Closed, reason)
}

// forceClosed keeps what a closed circuit has counted.
func (m *machine) forceClosed(p *policy, at *moment) {
	if m.state != Closed {
		m.close(p, at, "forced")
	} else if !m.forced {
		m.moved = at.now()
	}
	m.forced, m.reason = true, "forced"
}

// enter begins a generation: nothing that was counted or is out belongs to it. Every change of state is made here.
func (m *machine) enter(p *policy, at *moment, to State, reason string) {
	from := m.state
	m.moved, m.state, m.reason = at.now(), to, reason
	m.serial++
	m.first = m.serial
	m.history.clear()
	m.row, m.judged, m.leases, m.successes = 0, true, nil, 0
	if from != to {
		m.seq++
		m.change = Change{Name: p.Name, Seq: m.seq, From: from, To: to, Reason: reason}
	}
}

// credit records the successes that have passed without the lock. They were all before whatever comes next.
func (m *machine) credit(n int) {
	if n > 0 {
		m.history.credit(n)
		m.row = 0
	}
}

// letPass opens the tally where a success needs no judging: it only makes a clean window cleaner, or it lowers rates that
// did not trip, with the rule of the row out of force. Within a bucket nothing leaves the window, so that this stays so.
func (m *machine) letPass(p *policy, t *tally) {
	if m.state != Closed {
		return
	}
	switch h := m.history.(type) {
	case *ring:
		if h.clean() {
			t.open(absorbMode)
		}
	case *span:
		held := h.held()
		clean := held.failures == 0 && held.slow == 0
		if held.calls > 0 && (clean || m.judged && held.calls >= p.MinCalls) {
			t.openFor(h.current())
		}
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
