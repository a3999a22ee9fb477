package redisbreaker

import (
	"errors"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// view is what this process knows of the fleet's circuit. It never changes; a newer one takes its place, never one of a lower
// generation.
type view struct {
	serial uint64 // of the generation, counted here: what a closed circuit's permits carry
	known  bool   // the store has answered at least once

	state    breaker.State
	forced   bool
	gen, rev int64
	// The opening, on the server's clock in µs: what a store that has lost it gets back.
	opened, lasts, openTime, reopened int64
	reason                            string

	// The opening on this process's clock: no two clocks need to agree.
	since int64 // ns
	wait  time.Duration
	cause error // of an opening that this process's own results brought about

	// For people to read, on this process's clock, ns: when the state or force changed, as far as it is known (0 = it is not),
	// and the last opening that was not forced.
	moved, tripped int64
	trip           string

	// As the last answer told; they age.
	calls, failures, slow, probes, successes int
}

// answer is a script's reply.
type answer struct {
	verdict int64
	wait    time.Duration
	left    time.Duration // of the open time, at the instant of the script
	view
}

// The verdicts of luaAdmit, and that of a batch or a probe that has changed something.
const (
	probeAdmitted = 1
	probeRefused  = 2
	foundClosed   = 3
	counted       = 1
	countedLate   = 3 // a probe whose lease was over
)

var errReply = errors.New("redisbreaker: the script's reply is not what it sends")

func parse(r redisscript.Reply) (a answer, err error) {
	const fields = 17
	if r.Len() != fields {
		return a, errReply
	}
	var n [fields - 1]int64
	for i := range n {
		if n[i], err = r.At(i).Int(); err != nil {
			return a, errors.Join(errReply, err)
		}
	}
	a.verdict, a.wait = n[0], time.Duration(n[1])*time.Microsecond
	a.gen, a.rev, a.state, a.forced = n[2], n[3], breaker.State(n[4]), n[5] == 1
	a.opened, a.lasts, a.openTime, a.reopened = n[6], n[7], n[8], n[9]
	a.left = time.Duration(min(n[10], 1<<53)) * time.Microsecond
	a.successes, a.calls, a.failures, a.slow, a.probes = int(n[11]), int(n[12]), int(n[13]), int(n[14]), int(n[15])
	a.known, a.reason = true, r.At(16).Text()
	return a, nil
}

// newer says that an answer is at least as new as v.
func (v *view) newer(a *answer) bool { return a.gen > v.gen || a.gen == v.gen && a.rev >= v.rev }

// next is the view after an answer that is newer, to a call that was sent at the instant sent. The opening's end is counted
// from there: a call may ask too early, which the store then says exactly, but never wait too long.
func (v *view) next(a *answer, sent int64, cause error) *view {
	n := a.view
	n.serial, n.since, n.wait, n.cause = v.serial, v.since, v.wait, v.cause
	n.moved, n.tripped, n.trip = v.moved, v.tripped, v.trip
	if a.gen != v.gen || a.state != v.state {
		n.serial++
		n.cause = cause
		if n.state == breaker.HalfOpen && v.state == breaker.Open {
			n.cause = v.cause
		}
	}
	if a.calls < 0 { // not looked at
		n.calls = 0
		if n.serial == v.serial {
			n.calls, n.failures, n.slow = v.calls, v.failures, v.slow
		}
	}
	if n.serial != v.serial || a.rev != v.rev || !v.known {
		n.wait = time.Duration(min(a.lasts, 1<<53)) * time.Microsecond
		n.since = sent + int64(a.left) - int64(n.wait)
		n.dated(v, sent)
	}
	return &n
}

// dated notes when what n tells happened: no later than it was heard, and an opening began when the store says.
func (n *view) dated(v *view, heard int64) {
	switch {
	case n.state == breaker.Open && !n.forced:
		n.moved, n.tripped, n.trip = n.since, n.since, n.reason
	case v.known || n.serial != v.serial && n.state != breaker.Closed:
		n.moved = heard
	}
}

// ago is how long ago an instant was, at least 1 ns; 0 = not known.
func ago(at, now int64) time.Duration {
	if at == 0 {
		return 0
	}
	return time.Duration(max(1, now-at))
}

// left is how long an open circuit still refuses; 0 = it is over, or the clock went back.
func (v *view) left(now int64) time.Duration {
	if v.forced || v.state != breaker.Open || now < v.since {
		return 0
	}
	if gone := uint64(now) - uint64(v.since); gone < uint64(v.wait) {
		return v.wait - time.Duration(gone)
	}
	return 0
}

// refuses says that what is known is enough to refuse: the circuit is open.
func (v *view) refuses(now int64) (wait time.Duration, yes bool) {
	if v.state != breaker.Open {
		return 0, false
	}
	wait = v.left(now)
	return wait, v.forced || wait > 0
}

// told is ARGV[3…11].
func (v *view) told() []any {
	return []any{v.gen, v.rev, int(v.state), flag(v.forced), v.opened, v.lasts, v.openTime, v.reopened, v.reason}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
