package limit

import (
	"context"
	"sync"
)

// Keep takes over the cancelling of every Ctx that ctx is or derives from: they stay alive after End, until their deadline,
// their parent's end, or release. release may be called any number of times, from any goroutine. Without a Ctx, and for
// one that has been cancelled already, both do nothing.
func Keep(ctx context.Context) (release func()) {
	var kept []*Ctx
	for c := above(ctx); c != nil; c = above(c.parent) {
		c.keep()
		kept = append(kept, c)
	}
	if kept == nil {
		return func() {}
	}
	return sync.OnceFunc(func() {
		for _, c := range kept {
			c.release()
		}
	})
}

// above is the innermost Ctx that ctx is or derives from.
func above(ctx context.Context) *Ctx {
	c, _ := ctx.Value(key{}).(*Ctx)
	return c
}

// keep arms, which lets End do without the lock where nobody kept anything.
func (c *Ctx) keep() {
	c.mu.Lock()
	c.keeps++
	c.mu.Unlock()
	c.arm()
}

func (c *Ctx) release() {
	c.mu.Lock()
	c.keeps--
	last := c.over && c.keeps == 0
	c.mu.Unlock()
	if last {
		c.armed.Load().cancel()
	}
}
