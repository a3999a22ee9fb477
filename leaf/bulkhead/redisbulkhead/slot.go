package redisbulkhead

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

// handovers is how often a slot goes from one call of this process to the next before the fleet is asked whose turn it is.
const handovers = 8

// origin is who admitted.
type origin uint8

const (
	fromStore origin = iota
	fromShare        // FailLocal: this process's share in an outage
	fromOpen         // FailOpen
)

// slot is one slot that this process has, of the store or of its own. Its fields are guarded by the bulkhead's mu.
type slot struct {
	token     string // the permit's, in the store
	from      origin
	passed    int       // hand-overs so far
	known     bool      // the store may have the token
	lost      bool      // its lease ended while it was held: somebody else may be inside instead
	ended     bool      // given back
	expires   int64     // the end of the lease, µs of the server
	confirmed time.Time // no later than the beginning of the lease, here
}

// release is a slot on its way back.
type release struct {
	slot  *slot
	done  chan struct{} // closed when told
	told  bool
	err   error
	maybe bool // an earlier try may have been executed
	quiet bool // it may be nothing to give back: nobody was told that it was admitted
	until time.Time
}

// news says that it is something to tell if the store does not have r any more. Under mu.
func (r *release) news() bool { return !r.maybe && !r.quiet && !r.slot.lost }

// random is 128 bits.
func random() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return string(b[:])
}

// Settle frees the slot, whatever the outcome: it goes to the first of this process's queue, at most 8 times in a row, or back
// to the fleet, which lasts one store call. A slot that came back after its lease is nobody's any more: nothing changes, and
// OnStore hears of it. The error is a *leaf.StoreError with Op record; the slot is then given back in the background as soon as
// the store can be asked, or ends with its lease. Called by the permit alone.
func (b *Bulkhead) Settle(ctx context.Context, token uint64, o leaf.Outcome) error {
	r := b.giveBack(token)
	if r == nil {
		return nil
	}
	budget := time.NewTimer(b.patient())
	defer budget.Stop()
	select {
	case <-r.done:
		return r.err
	case <-budget.C:
		return b.storeError(leaf.OpRecord, errNoAnswer, false)
	}
}

func (b *Bulkhead) giveBack(token uint64) *release {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.drop(token)
	if s == nil {
		return nil
	}
	return b.put(s)
}

// lively says that s may go from call to call.
func (s *slot) lively() bool { return s.from == fromStore && s.passed < handovers }

// hold notes that a call has s; it returns the permit's token. Under mu.
func (b *Bulkhead) hold(s *slot) uint64 {
	if s.lively() {
		b.lively++
	}
	return b.held.put(s)
}

// drop takes the slot from the permit that holds it; nil = it holds none. Under mu.
func (b *Bulkhead) drop(token uint64) *slot {
	s := b.held.take(token)
	if s != nil && s.lively() {
		b.lively--
	}
	return s
}

// put takes a slot that nobody holds any more, and hands it on or sends it back; nil = nothing is left to wait for. Under mu.
func (b *Bulkhead) put(s *slot) *release {
	if front := b.queue.front; front != nil && s.lively() && b.valid(s) && !b.engine.closed {
		s.passed++
		b.grant(front, s)
		return nil
	}
	s.ended = true
	if s.from == fromShare {
		b.outage.inside--
		b.serveShare()
	}
	if !s.known {
		return nil
	}
	r := b.send(s, s.from != fromStore)
	if s.from != fromStore && b.outage.down {
		return nil // it came from here, and is back
	}
	return r
}

// send puts a slot among the releases. Under mu.
func (b *Bulkhead) send(s *slot, quiet bool) *release {
	s.ended = true
	now := time.Now()
	r := &release{slot: s, quiet: quiet, done: make(chan struct{}), until: now.Add(b.opts.LeaseTTL)}
	b.releases = append(b.releases, r)
	if s.passed == handovers {
		b.soon(now)
	} else {
		b.engine.now = true
		b.run()
	}
	return r
}

// mostCompany bounds how long a slot waits for others to come back with.
const mostCompany = time.Millisecond

// soon has a turn taken for slots that were handed over as often as may be, or that the store keeps for this process: at once, or
// together with the slots that came last and still go from call to call, until all are spent or a turn could have come back.
// Calls that are over so fast have one turn carry all their slots, instead of one for each; others do not wait. Under mu.
func (b *Bulkhead) soon(now time.Time) {
	e := &b.engine
	at := e.granted.Add(min(e.took, mostCompany))
	e.spent = b.lively == 0 || !now.Before(at)
	if e.spent {
		b.run()
	} else {
		b.by(at)
	}
}

// tell ends the wait for r. Under mu.
func (r *release) tell(err error) {
	if !r.told {
		r.told, r.err = true, err
		close(r.done)
	}
}

// valid says that s is surely still the holder's in the store. Under mu.
func (b *Bulkhead) valid(s *slot) bool {
	if s.lost || b.engine.seen >= s.expires {
		return false
	}
	return b.opts.Now != nil || time.Since(s.confirmed) < b.opts.LeaseTTL
}

// confirm notes that the store has s until lease after now; sent is when it was asked. Under mu.
func (b *Bulkhead) confirm(s *slot, now int64, sent time.Time) {
	s.known, s.expires, s.confirmed = true, now+b.opts.LeaseTTL.Microseconds(), sent
}
