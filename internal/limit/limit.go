package limit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
)

// Ctx is parent with a limit, armed lazily. It is a context.Context, safe for concurrent use; it must not be copied.
type Ctx struct {
	parent   context.Context
	injected *clock.Clock // nil = real time: most need not carry one
	at       int64        // when the limit fires
	until    int64        // the earlier of at and the parent's deadline
	spec     *Spec

	armed atomic.Pointer[armed] // nil = lazy: nobody waits
	own   armed                 // what armed points to once somebody waits: one allocation less

	mu       sync.Mutex // guards what follows, and who sets armed
	deadline *time.Time // at, in real time; nil until it is asked for. Kept, since finding it again would give another
	keeps    int32
	over     bool    // End was called
	inherits bool    // the parent's deadline comes no later: this limit never fires. Set by New
	verdict  verdict // once known, known for good
}

// Spec is what all contexts of one limit have in common. It never changes.
type Spec struct {
	Name  string
	Limit time.Duration // also bounds how far ahead of now the limit can fire (see [Ctx.left])
	// NewCause makes the error that context.Cause reports once the limit has fired; it is called at most once per Ctx, and only
	// when it is needed. It must give a new pointer: the limit is known by its identity.
	NewCause func(name string, limit time.Duration) error
}

// New makes a Ctx whose limit fires at the instant at, on clk's scale.
//
// A parent whose deadline is not later than at keeps it: the limit then never fires, and Deadline is the parent's.
func New(parent context.Context, clk clock.Clock, at int64, spec *Spec) *Ctx {
	c := &Ctx{parent: parent, at: at, until: at, spec: spec}
	if !clk.Real() {
		injected := clk // a copy, so that in real time nothing escapes
		c.injected = &injected
	}
	if outer, ok := deadlineOf(parent, clk); ok && outer <= at {
		c.until, c.inherits = outer, true
	}
	return c
}

// deadlineOf is parent's deadline as an instant of clk. A Ctx directly above is asked for its own instant, which is exact
// and reads no clock.
func deadlineOf(parent context.Context, clk clock.Clock) (int64, bool) {
	if p, ok := parent.(*Ctx); ok && p.injected == nil && clk.Real() {
		return p.until, true
	}
	deadline, ok := parent.Deadline()
	if !ok {
		return 0, false
	}
	return clk.At(deadline), true
}

// clk is New's.
func (c *Ctx) clk() clock.Clock {
	if c.injected == nil {
		return clock.Clock{}
	}
	return *c.injected
}

// At is the instant given to New.
func (c *Ctx) At() int64 { return c.at }

// Limit is the Spec's name and duration.
func (c *Ctx) Limit() (name string, limit time.Duration) { return c.spec.Name, c.spec.Limit }

// Deadline is the limit's or, where that comes no later, the parent's. It is found when it is first needed.
func (c *Ctx) Deadline() (time.Time, bool) {
	if c.inherits {
		return c.parent.Deadline()
	}
	if c.injected != nil {
		return c.injected.TimeOf(c.at), true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.armed.Load(); a != nil {
		if deadline, ok := a.Deadline(); ok && !deadline.IsZero() {
			return deadline, true
		}
	}
	if c.deadline == nil {
		now, start := c.clk().Both()
		left, _ := c.left(now)
		deadline := start.Add(left)
		c.deadline = &deadline
	}
	return *c.deadline, true
}

// Done arms the limit.
func (c *Ctx) Done() <-chan struct{} { return c.arm().Done() }

// Err asks the parent, then the clock, for as long as nobody has asked for Done. What it finds is then on record.
func (c *Ctx) Err() error {
	if a := c.armed.Load(); a != nil {
		return a.Err()
	}
	if c.parent.Err() == nil && (c.inherits || c.clk().Now() < c.at) {
		return nil
	}
	return c.arm().Err()
}

// key is what a Ctx returns itself for.
type key struct{}

// Value is the parent's. Package context finds the cause, and where to register children, with a key of its own whose type
// is *int: that one is answered by the armed context, which is made for it once the limit has ended.
func (c *Ctx) Value(k any) any {
	switch k.(type) {
	case key:
		return c
	case *int:
		if c.armed.Load() == nil && c.Err() == nil {
			break
		}
		if v := c.armed.Load().Value(k); v != nil {
			return v
		}
	}
	return c.parent.Value(k)
}

// String names the limit behind the parent, as package context's own contexts do.
func (c *Ctx) String() string {
	return fmt.Sprintf("%v.WithLimit(%q, %v)", c.parent, c.spec.Name, c.spec.Limit)
}

// left is the time until the limit fires; not positive once it should have. More than the limit itself cannot be left: the
// clock has jumped back (a Ctx that crossed into a synctest bubble), and the limit begins anew.
func (c *Ctx) left(now int64) (left time.Duration, jumped bool) {
	left = time.Duration(clock.Add(c.at, -time.Duration(now)))
	if most := c.spec.Limit; most > 0 && left > most {
		return most, true
	}
	return left, false
}
