package redisbulkhead

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

const (
	firstPoll = 5 * time.Millisecond  // after a turn that changed something
	lastPoll  = 50 * time.Millisecond // at most; jittered by half, in both directions
	patience  = 6 * lastPoll          // how long a waiting process that is not heard of keeps its place in the line
	retry     = 50 * time.Millisecond // after a failure, for what is left to be told
	linger    = 5 * time.Second       // how long hints are listened to after the last wait
)

// engine is the one goroutine of a bulkhead that talks to the store. It runs while there is anything to do: calls that ask or
// wait, slots that are held and have to be renewed, slots to be given back. Guarded by the bulkhead's mu.
type engine struct {
	wake    chan struct{}
	running bool
	gone    chan struct{} // closed when the running one has ended
	closed  bool          // by Close: one last turn

	now     bool          // there is something to do at once
	spent   bool          // the same, says soon
	at      time.Time     // there is something to do then; zero = nothing
	renewAt time.Time     // everything that is held is to be renewed; zero = nothing is
	poll    time.Duration // the present one
	took    time.Duration // the last turn
	granted time.Time     // the last time that the store granted slots

	registered bool  // this process stands in the store's line
	wants      int   // how many slots it wants there
	quarantine int64 // its end, as the last turn found; 0 = there is none
	seen       int64 // the store's now at the last turn, µs; 0 = none yet
	stale      int   // turns in a row that came too late
	ahead      int64 // seen minus this process's own clock, no more than that, µs

	listener  context.CancelFunc // nil = nobody listens
	lastWait  time.Time
	lastBatch bool // the turn that Close asks for has been sent
}

// epoch is when this process's own clock began.
var epoch = time.Now()

// run starts the engine, or wakes it. Under mu.
func (b *Bulkhead) run() {
	e := &b.engine
	if e.running {
		select {
		case e.wake <- struct{}{}:
		default:
		}
		return
	}
	gone := make(chan struct{})
	if !e.closed && b.store.Go(func(ctx context.Context) { defer close(gone); b.loop(ctx) }) {
		e.running, e.gone = true, gone
		return
	}
	b.closedDown()
}

// closedDown decides on everything as in an outage without end. Under mu.
func (b *Bulkhead) closedDown() {
	b.engine.now = false
	b.outage.down = true
	for _, r := range b.releases {
		r.tell(b.storeError(leaf.OpRecord, errClosed, !r.maybe))
	}
	b.releases, b.renewals = nil, nil
	if b.queue.n > 0 {
		b.decideAll(errClosed, true, nil)
	}
}

// by has a turn taken at that instant, or before. Under mu.
func (b *Bulkhead) by(at time.Time) {
	if e := &b.engine; e.at.IsZero() || at.Before(e.at) {
		e.at = at
		b.run()
	}
}

func (b *Bulkhead) loop(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		t, sleep := b.next()
		switch {
		case t != nil:
			b.take(t)
			continue
		case sleep <= 0:
			return
		}
		timer.Reset(sleep)
		select {
		case <-b.engine.wake:
		case <-timer.C:
		case <-ctx.Done(): // Close has waited in vain
			b.abandon()
			return
		}
	}
}

// next is the turn to take now; without one, how long there is nothing to do; 0 = for ever, and the engine has ended.
func (b *Bulkhead) next() (*turnCall, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &b.engine
	now := time.Now()
	if e.closed {
		return b.lastTurn(now)
	}
	b.dueRenewals(now)
	if e.now || e.spent || !e.at.IsZero() && !now.Before(e.at) {
		e.now, e.spent, e.at = false, false, time.Time{}
		if t := b.compose(now); t != nil {
			return t, 0
		}
	}
	b.dueListener(now)
	until := e.renewAt
	if !e.at.IsZero() && (until.IsZero() || e.at.Before(until)) {
		until = e.at
	}
	if e.listener != nil && until.IsZero() {
		until = e.lastWait.Add(linger)
	}
	if until.IsZero() {
		e.running = false
		return nil, 0
	}
	return nil, max(until.Sub(now), time.Microsecond)
}

// dueRenewals puts everything that is held among the renewals when a third of the lease is over, or a little earlier: a
// quarantine lasts a third, and whoever lives must have reported within it. Under mu.
func (b *Bulkhead) dueRenewals(now time.Time) {
	e := &b.engine
	if b.held.len() == 0 {
		e.renewAt = time.Time{}
		return
	}
	if e.renewAt.IsZero() {
		e.renewAt = now.Add(b.renewEvery())
	}
	if !now.Before(e.renewAt) {
		b.renewAll(now)
	}
}

// renewAll has everything that is held told to the store. Under mu.
func (b *Bulkhead) renewAll(now time.Time) {
	b.renewals = b.renewals[:0]
	b.held.each(func(s *slot) { b.renewals = append(b.renewals, s) })
	b.engine.renewAt = now.Add(b.renewEvery())
	b.engine.now = true
}

// renewEvery is between 0.8 and 0.95 thirds of the lease: processes that started together should not renew together.
func (b *Bulkhead) renewEvery() time.Duration {
	return time.Duration(float64(b.opts.LeaseTTL) / 3 * (0.8 + 0.15*rand.Float64()))
}

// dueListener ends the listening to hints some time after the last wait. Under mu.
func (b *Bulkhead) dueListener(now time.Time) {
	e := &b.engine
	if b.queue.n > 0 {
		e.lastWait = now
	}
	if e.listener != nil && now.Sub(e.lastWait) >= linger {
		e.listener()
		e.listener = nil
	}
}

// schedule plans the next turn after one that worked; moved says that it changed something for those who wait. Under mu.
func (b *Bulkhead) schedule(now time.Time, moved bool) {
	e := &b.engine
	unasked := b.waiting < b.queue.n
	if len(b.renewals) > 0 || unasked || e.registered && b.queue.n == 0 {
		e.now = true
	}
	if moved || e.poll == 0 {
		e.poll = firstPoll
	} else {
		e.poll = min(e.poll*3/2, lastPoll)
	}
	if b.waiting > 0 {
		e.at = now.Add(jitter(e.poll))
	}
	if slices.ContainsFunc(b.releases, func(r *release) bool { return r.slot.passed < handovers }) {
		e.now = true
	} else if len(b.releases) > 0 || e.spent { // during the turn; it may have brought company
		b.soon(now)
	}
}

// later plans the next turn after one that failed. Under mu.
func (b *Bulkhead) later(now time.Time) {
	b.releases = slices.DeleteFunc(b.releases, func(r *release) bool { return now.After(r.until) })
	b.renewals = slices.DeleteFunc(b.renewals, func(s *slot) bool { return s.ended })
	if len(b.releases) > 0 || len(b.renewals) > 0 || b.queue.n > 0 || b.engine.registered {
		b.engine.at = now.Add(jitter(retry))
	}
}

func jitter(d time.Duration) time.Duration { return time.Duration(float64(d) * (0.5 + rand.Float64())) }

// lastTurn is what Close asks for: everything is given back, once, and the engine has ended.
func (b *Bulkhead) lastTurn(now time.Time) (*turnCall, time.Duration) {
	e := &b.engine
	if !e.lastBatch && (len(b.releases) > 0 || e.registered) {
		more := len(b.releases) > mostInTurn
		e.lastBatch = !more
		b.renewals = nil
		return b.compose(now), 0
	}
	b.end()
	return nil, 0
}

// end is the engine's last act. Under mu.
func (b *Bulkhead) end() {
	if b.engine.listener != nil {
		b.engine.listener()
		b.engine.listener = nil
	}
	b.engine.running = false
	b.closedDown()
}

func (b *Bulkhead) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.engine.closed = true
	b.end()
}

// Close gives back what is on its way, takes this process out of the fleet's line and ends every goroutine; it leaves the client
// open. It may be called again. Permits that are still out stay in the store until their lease ends, and are not renewed any
// more: close after the last call. Whoever waits is decided on by the outage policy, and so is every later Acquire.
// Its error says what did not end before ctx did. A hook must not call it: it waits for hooks that run.
func (b *Bulkhead) Close(ctx context.Context) error {
	if gone := b.shut(); gone != nil {
		select {
		case <-gone:
		case <-ctx.Done():
		}
	}
	return b.store.Close(ctx)
}

// shut closes the door; it returns what tells when the engine has ended, nil = it does not run.
func (b *Bulkhead) shut() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.engine.closed = true
	if !b.engine.running {
		b.closedDown()
		return nil
	}
	b.decideAll(errClosed, true, nil)
	b.run()
	return b.engine.gone
}
