package rediscooldown

import (
	"context"
	"sync"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/leaf"
)

// again is the pause before a hint is brought to a store that could not be reached.
const again = 100 * time.Millisecond

// news is the instant of this process that the store has not heard of. What was learned from the store is not in it: sent back,
// it would move by a round trip each time.
type news struct {
	mu      sync.Mutex
	until   int64         // on the clock's scale
	most    time.Duration // Max when it was hinted: further ahead it is what a jump of the clock left behind
	untold  bool
	telling bool
}

// tell has the hint brought to the store by one goroutine, which is started where there is none.
func (c *Cooldown) tell(ctx context.Context, wait time.Duration) {
	until := clock.Add(c.clock.Now(), wait)
	n := &c.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.untold {
		until = max(until, n.until)
	}
	n.until, n.most, n.untold = until, max(wait, c.local.Config().Max), true
	if n.telling {
		return
	}
	values := context.WithoutCancel(ctx)
	n.telling = c.store.Go(func(closing context.Context) { c.teller(values, closing) })
}

// teller tries until the store has heard, or the instant has passed.
func (c *Cooldown) teller(ctx, closing context.Context) {
	for c.next() {
		if c.tellOnce(ctx) == nil {
			continue
		}
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-closing.Done():
			timer.Stop()
			c.stopped()
			return
		}
	}
}

// next says whether there is something to tell; without, the teller is no longer one.
func (c *Cooldown) next() bool {
	n := &c.news
	n.mu.Lock()
	defer n.mu.Unlock()
	now := c.clock.Now()
	n.untold = n.untold && n.until > now && n.until <= clock.Add(now, n.most)
	n.telling = n.untold
	return n.telling
}

func (c *Cooldown) stopped() {
	c.news.mu.Lock()
	defer c.news.mu.Unlock()
	c.news.telling = false
}

// tellOnce sends what is left of the instant, if there is one.
func (c *Cooldown) tellOnce(ctx context.Context) error {
	n := &c.news
	n.mu.Lock()
	until, wait := n.until, time.Duration(0)
	if n.untold {
		wait = min(time.Duration(until-c.clock.Now()), c.local.Config().Max) // which may have become smaller
	}
	n.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	if err := c.meet(ctx, leaf.OpRecord, wait); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.until == until { // else a later hint came meanwhile
		n.untold = false
	}
	return nil
}

// flush tells the store what it has not heard, as long as ctx allows.
func (c *Cooldown) flush(ctx context.Context) error {
	done := make(chan error, 1)
	if !c.store.Go(func(context.Context) { done <- c.tellOnce(context.WithoutCancel(ctx)) }) {
		return nil // closed before
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return nil // what Close of the store will say
	}
}
