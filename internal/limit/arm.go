package limit

import (
	"context"
	"errors"
	"time"
)

// armed is the real context that a Ctx delegates to once somebody waits for it, or once it has ended.
type armed struct {
	context.Context
	cause   error    // by which the limit's own firing is known; nil where it cannot fire
	cancel  func()   // releases everything: timer, registration, children
	trigger *trigger // of an injected clock
}

// Err is the context's, which an injected clock may have to bring up to date first.
func (a *armed) Err() error {
	if a.trigger != nil {
		a.trigger.pull()
	}
	return a.Context.Err()
}

// cancelled stands for every Ctx that ended before anybody had asked for Done.
var cancelled = func() *armed {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &armed{Context: ctx, cancel: func() {}}
}()

// arm makes the real context, once.
func (c *Ctx) arm() *armed {
	if a := c.armed.Load(); a != nil {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.armed.Load(); a != nil {
		return a
	}
	c.own = c.newArmed()
	if !c.armed.CompareAndSwap(nil, &c.own) { // End does without the lock
		c.own.cancel()
	}
	return c.armed.Load()
}

// newArmed runs under mu. What it calls knows nothing of c, except for the parents: locks go from child to parent only.
func (c *Ctx) newArmed() armed {
	now, start := c.clk().Both()
	left, jumped := c.left(now)
	if c.inherits || c.parentFirst(left) {
		ctx, cancel := context.WithCancelCause((*upstream)(c))
		if c.parent.Err() != nil { // a parent without Done cancels nobody
			cancel(context.Cause(c.parent))
		}
		return armed{Context: ctx, cancel: func() { cancel(nil) }}
	}
	cause := c.spec.NewCause(c.spec.Name, c.spec.Limit)
	if left <= 0 { // over already, whatever the parent's state
		ctx, cancel := context.WithDeadlineCause(context.WithoutCancel(c.parent), time.Time{}, cause)
		return armed{Context: ctx, cause: cause, cancel: cancel}
	}
	if c.injected != nil {
		return triggered(c.parent, *c.injected, left, cause)
	}
	deadline := start.Add(left)
	if c.deadline != nil && !jumped {
		deadline = *c.deadline
	}
	ctx, cancel := context.WithDeadlineCause((*upstream)(c), deadline, cause)
	return armed{Context: ctx, cause: cause, cancel: cancel}
}

// parentFirst says that the parent has ended before the limit. Where both are over, nobody watched: a parent that was
// cancelled has left no instant, and counts; one that expired did so after the limit, since New inherits an earlier
// deadline, unless it does not tell its deadline.
func (c *Ctx) parentFirst(left time.Duration) bool {
	err := c.parent.Err()
	if err == nil || left > 0 {
		return err != nil
	}
	_, known := c.parent.Deadline()
	return !known || !errors.Is(err, context.DeadlineExceeded)
}

// upstream is a Ctx's parent without its deadline. New has compared the two on the monotonic scale already; package
// context would do it again by the wall clock where the parent's deadline has no monotonic reading, and a step of that
// clock would then take the limit's timer away.
type upstream Ctx

func (*upstream) Deadline() (time.Time, bool) { return time.Time{}, false }
func (u *upstream) Done() <-chan struct{}     { return u.parent.Done() }
func (u *upstream) Err() error                { return u.parent.Err() }
func (u *upstream) Value(k any) any           { return u.parent.Value(k) }

// AfterFunc spares a goroutine where the parent is somebody's own context that has this method too.
func (u *upstream) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(u.parent, f) }
