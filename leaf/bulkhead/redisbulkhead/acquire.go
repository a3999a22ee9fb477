package redisbulkhead

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
)

// slack is how much longer than its turns may last a call waits for the store's answer: who shares a turn with others hears of
// its failure from it.
const slack = 10 * time.Millisecond

// moment is what the timer of ctx may be late by, as in package bulkhead: whose end it is must not hang on which of two is served
// first. Only a ctx whose Done does not keep its Deadline meets ours.
const moment = 5 * time.Millisecond

// patient is how long a call waits for the store's answer: who comes while a turn is under way rides on the next one. With a store
// that does not answer it is no longer than one, whose failure decides on everybody.
func (b *Bulkhead) patient() time.Duration { return 2*b.opts.Timeout + slack }

// Acquire takes a slot of the fleet, waits for one at most MaxWait and as long as ctx lives, or refuses with a
// *bulkhead.FullError. MaxWait counts from here, the store's answer included: one shorter than a round trip admits hardly anybody,
// while 0 waits for the answer and for nothing else. When ctx ends the wait, the error is ctx's own. Where ctx's deadline and the end of MaxWait are the same
// instant, it is ctx that ends the wait. While the store cannot be asked, the outage policy decides; FailClosed refuses with a
// *leaf.StoreError.
func (b *Bulkhead) Acquire(ctx context.Context) (leaf.Permit, error) { return b.acquire(ctx, true) }

// TryAcquire takes a slot or refuses; it overtakes nobody of this process who waits. It lasts one store call.
func (b *Bulkhead) TryAcquire(ctx context.Context) (leaf.Permit, error) { return b.acquire(ctx, false) }

func (b *Bulkhead) acquire(ctx context.Context, mayWait bool) (leaf.Permit, error) {
	if err := ended.Err(ctx); err != nil {
		return leaf.Permit{}, err
	}
	b.store.Repanic()
	c := &call{ends: endless, ready: make(chan struct{})}
	maxWait := b.cfg.Load().MaxWait
	if mayWait && maxWait > 0 {
		c.wait, c.began = true, b.clock.Now()
		if left, ok := b.clock.Left(ctx); ok && left <= maxWait && ctx.Done() != nil { // it ends first, or in the same instant
			maxWait = max(maxWait, left+moment)
		}
		c.ends = clock.Add(c.began, maxWait)
	}
	asks, err := b.join(c)
	if err != nil {
		return leaf.Permit{}, err
	}
	token, err := b.await(ctx, c, asks)
	if err != nil {
		return leaf.Permit{}, err
	}
	return leaf.NewPermit(b, token), nil
}

// join gives c a place in the queue, or refuses it where it is known to be in vain. asks says that c waits for the store's answer.
func (b *Bulkhead) join(c *call) (asks bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := b.cfg.Load().MaxQueue
	if b.waiting > 0 && (!c.wait || most > 0 && b.waiting >= most) {
		return false, b.full(0)
	}
	c.queued = true
	b.queue.insert(c, b.queue.back)
	if b.clock.Real() {
		b.count(c)
	}
	if b.waiting == b.queue.n-1 && b.known() {
		b.turnedDown(c, b.full)
		return false, nil
	}
	b.engine.now = true
	b.run()
	return true, nil
}

// known says that the store's answer is known to who stands behind nobody but those whom it has refused: it already deals this
// process as many slots as the queue could use. Nobody who waits may stand behind one who still asks: a turn asks for the end of the
// queue. Under mu.
func (b *Bulkhead) known() bool {
	e := &b.engine
	return b.waiting > 0 && e.registered && !e.closed && !b.outage.down && e.wants >= min(b.queue.n, b.cfg.Load().MaxConcurrent)
}

// overhear gives the answer to a turn to those who came during it, where it would be known to them if they came now. Else one who
// came during a turn would have a turn taken for it, in which others come, without end. Under mu.
func (b *Bulkhead) overhear() {
	if !b.known() {
		return
	}
	var first *call
	for c := b.queue.back; c != nil && !c.waits; c = b.queue.prev(c) {
		first = c
	}
	for first != nil {
		next := b.queue.next(first)
		b.turnedDown(first, b.full)
		first = next
	}
}

// await waits until c is decided, MaxWait is over or ctx is done. Whatever unwinds it, be it a panic of the program's clock or
// context, the place in the queue and a slot granted meanwhile are not lost.
func (b *Bulkhead) await(ctx context.Context, c *call, asks bool) (token uint64, err error) {
	admitted := false
	defer func() {
		if !admitted {
			b.leave(c)
		}
	}()
	var over <-chan time.Time
	if c.ends != endless && !b.clock.Real() {
		t := b.clock.NewTimer(time.Duration(c.ends - c.began))
		defer t.Stop()
		over = t.C
	}
	var budget <-chan time.Time
	if asks {
		t := time.NewTimer(b.patient())
		defer t.Stop()
		budget = t.C
	}
	select {
	case <-c.ready:
	case <-over:
	case <-ctx.Done():
	case <-budget:
		b.unanswered(c)
		select {
		case <-c.ready:
		case <-over:
		case <-ctx.Done():
		}
	}
	// Several may have happened at once. A done ctx wins over the slot, the slot over the end of the wait.
	if err := ended.Err(ctx); err != nil {
		return 0, err
	}
	select {
	case <-c.ready:
		if c.err != errOver {
			admitted = c.err == nil
			return c.token, c.err
		}
	default:
	}
	return 0, b.inVain(time.Duration(b.clock.Now() - c.began))
}

// inVain is the refusal at the end of MaxWait.
func (b *Bulkhead) inVain(waited time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.outage.down && b.opts.OnOutage == leaf.FailLocal {
		return b.fullShare(waited)
	}
	return b.full(waited)
}

// leave takes c out, wherever it stands: its place is free, or the slot that it was just granted goes to the next.
func (b *Bulkhead) leave(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !c.decided:
		b.remove(c)
		b.deserted()
	case c.err == nil:
		if s := b.drop(c.token); s != nil {
			b.put(s)
		}
	}
}

// deserted has this process leave the fleet's line once nobody waits any more. Under mu.
func (b *Bulkhead) deserted() {
	if b.queue.n == 0 && b.engine.registered {
		b.engine.now = true
		b.run()
	}
}

// unanswered lets the policy decide on a call for which the store had no answer in time, though it may answer others.
func (b *Bulkhead) unanswered(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !c.waits {
		b.decide(c, b.storeError(leaf.OpAdmit, errNoAnswer, false))
	}
}

// remove takes c out of the queue. Under mu.
func (b *Bulkhead) remove(c *call) {
	if c.queued {
		c.queued = false
		b.queue.remove(c)
		if b.clock.Real() {
			b.discount(c)
		}
	}
	if c.waits {
		c.waits = false
		b.waiting--
	}
}

// grant gives s to c. Under mu.
func (b *Bulkhead) grant(c *call, s *slot) {
	b.remove(c)
	c.decided, c.token = true, b.hold(s)
	close(c.ready)
}

// refuse ends c with err. Under mu.
func (b *Bulkhead) refuse(c *call, err error) {
	b.remove(c)
	c.decided, c.err = true, err
	close(c.ready)
}

// turnedDown is what the store's no means to c: it waits on, if it may, and if there is a place. Under mu.
func (b *Bulkhead) turnedDown(c *call, full func(time.Duration) error) {
	most := b.cfg.Load().MaxQueue
	switch {
	case !c.queued || c.waits:
	case !c.wait || most > 0 && b.waiting >= most:
		b.refuse(c, full(0))
	default:
		c.waits = true
		b.waiting++
	}
}
