package rediscooldown

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
)

// How old what was heard of the store may be.
const (
	fresh = 50 * time.Millisecond  // good as it is
	stale = 100 * time.Millisecond // no call is admitted on it
)

// view is when the store was last heard of.
type view struct {
	heard atomic.Int64 // on the clock's scale, when the call that heard it began; never = not yet

	mu   sync.Mutex
	read *reading // under way
}

const never = math.MinInt64

func (v *view) init() { v.heard.Store(never) }

// age is how old the view is; that of a clock which went back, or crossed into a test's bubble, is as good as none.
func (v *view) age(now int64) time.Duration {
	heard := v.heard.Load()
	if heard == never || heard > now {
		return math.MaxInt64
	}
	return time.Duration(now - heard)
}

// reading is one question, and everyone who waits for its answer.
type reading struct {
	done chan struct{}
	err  error // a store error, after done
}

// read asks the store in the background, unless somebody is at it already.
func (c *Cooldown) read() *reading {
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	if c.view.read != nil {
		return c.view.read
	}
	r := &reading{done: make(chan struct{})}
	if !c.store.Go(func(context.Context) { c.ask(r) }) {
		_, r.err = c.store.Do(context.Background(), redisscript.Call{Op: leaf.OpAdmit}) // closed: it says so itself
		close(r.done)
		return r
	}
	c.view.read = r
	return r
}

func (c *Cooldown) ask(r *reading) {
	defer func() {
		c.view.mu.Lock()
		c.view.read = nil
		c.view.mu.Unlock()
		close(r.done)
	}()
	r.err = c.meet(context.Background(), leaf.OpAdmit, 0)
}

// wait reads, and returns an error where the call may not be admitted: ctx's own, or the store's under FailClosed.
func (c *Cooldown) wait(ctx context.Context) error {
	r := c.read()
	select {
	case <-r.done:
	case <-ctx.Done():
		return ended.Err(ctx)
	}
	if r.err != nil && c.store.Options().OnOutage == leaf.FailClosed {
		return r.err
	}
	return nil
}

// meet brings the store the wait of this process (0 = none), and adopts the fleet's.
func (c *Cooldown) meet(ctx context.Context, op string, wait time.Duration) error {
	began, known := c.clock.Now(), c.local.Wait()
	reply, err := c.store.Do(ctx, redisscript.Call{
		Op: op, Script: meet, Args: []any{micros(wait), micros(c.local.Config().Max)},
	})
	if err != nil {
		return err
	}
	left, err := reply.Int()
	if err != nil {
		return &leaf.StoreError{Op: op, Name: c.local.Config().Name, Err: err}
	}
	// What was known here comes back as an instant that is later by the round trip, and rounded up: it must not grow each time.
	if fleet := time.Duration(min(left, micros(longest))) * time.Microsecond; fleet-max(known, wait) >= time.Microsecond {
		c.local.Hint(ctx, fleet)
	}
	c.view.heard.Store(began)
	return nil
}
