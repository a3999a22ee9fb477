package limit

import (
	"context"
	"time"
)

// Hold is [Keep] for whoever has a place of its own to remember it: it allocates nothing of its own. [Release] ends it, exactly once for
// each Hold, with the same ctx.
func Hold(ctx context.Context) {
	for c := above(ctx); c != nil; c = above(c.parent) {
		c.keep()
	}
}

// Release undoes one [Hold].
func Release(ctx context.Context) {
	for c := above(ctx); c != nil; c = above(c.parent) {
		c.release()
	}
}

// Left is the time until c's deadline on its own clock, never negative. It needs no time.Time, which Deadline has to make.
func (c *Ctx) Left() time.Duration {
	if c.inherits {
		if outer, ok := c.parent.(*Ctx); ok {
			return outer.Left()
		}
		left, _ := c.clk().Left(c.parent)
		return left
	}
	left, _ := c.left(c.clk().Now())
	return max(0, left)
}
