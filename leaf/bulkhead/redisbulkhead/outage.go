package redisbulkhead

import (
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
)

// outage is the time in which the store cannot be asked, as the last turn found it. Guarded by the bulkhead's mu.
type outage struct {
	down   bool
	inside int // calls that the share admitted and that are still inside, those of earlier outages included
}

// share is how many calls a FailLocal outage admits in this process.
func (b *Bulkhead) share() int { return max(1, b.cfg.Load().MaxConcurrent/b.opts.Instances) }

// fullShare is the refusal of the local share, as that of a local bulkhead of its size.
func (b *Bulkhead) fullShare(waited time.Duration) error {
	return &bulkhead.FullError{Name: b.cfg.Load().Name, Max: b.share(), Waited: max(0, waited)}
}

// decide lets the policy decide on one call; err is what the store, or its silence, had to say. Under mu.
func (b *Bulkhead) decide(c *call, err error) {
	switch {
	case !c.queued: // it has left, or was decided on in between
	case b.opts.OnOutage == leaf.FailClosed:
		b.refuse(c, err)
	case b.opts.OnOutage == leaf.FailOpen:
		b.admit(c, fromOpen)
	default:
		if b.outage.inside < b.share() {
			b.admit(c, fromShare)
			return
		}
		b.turnedDown(c, b.fullShare)
	}
}

// admit grants a slot of this process's own. The store is told as soon as it can be asked, so that it admits so many fewer.
// Under mu.
func (b *Bulkhead) admit(c *call, from origin) {
	s := &slot{token: random(), from: from}
	if from == fromShare {
		b.outage.inside++
	}
	b.renewals = append(b.renewals, s)
	b.grant(c, s)
	if b.engine.at.IsZero() {
		b.engine.at = time.Now().Add(jitter(retry))
	}
	b.run()
}

// decideAll lets the policy decide on everybody in the queue; sent is who asked for the first time, in a turn that may have been
// executed. Under mu.
func (b *Bulkhead) decideAll(why error, notExecuted bool, sent map[*call]bool) {
	for c := b.queue.front; c != nil; {
		next := b.queue.next(c)
		b.decide(c, b.storeError(leaf.OpAdmit, why, notExecuted || !c.waits && !sent[c]))
		c = next
	}
}

// serveShare hands what is free of this process's share to the first in the queue. Under mu.
func (b *Bulkhead) serveShare() {
	if b.opts.OnOutage != leaf.FailLocal || !b.outage.down {
		return
	}
	for b.queue.n > 0 && b.outage.inside < b.share() {
		b.admit(b.queue.front, fromShare)
	}
}
