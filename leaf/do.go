package leaf

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
)

// Do runs fn behind one guard alone.
//
// A ctx that is done already runs nothing and asks nobody; the error matches ctx.Err() and context.Cause(ctx). A refusal
// comes back unchanged. After Acquire ctx is checked once more: if it ended, fn does not run and the guard gets NotRun.
// The guard is settled exactly once, also when fn panics or calls runtime.Goexit, which then go on unwinding on the
// caller's goroutine; a panic inside Settle never replaces fn's. fn's error comes back unchanged.
// On an error the result is the zero T. Took is measured with package time, where g is [Timed] or ctx has a deadline.
func Do[T any](ctx context.Context, g Guard, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if err := ended.Err(ctx); err != nil {
		return zero, err
	}
	var c call
	c.begin(ctx, g)
	var err error
	if c.permit, err = g.Acquire(ctx); err != nil {
		return zero, err
	}
	defer c.unwind(ctx)
	if err := ended.Err(ctx); err != nil {
		c.settle(ctx, Outcome{Verdict: NotRun, Err: err, Given: c.given})
		return zero, err
	}
	c.enter()
	v, err := fn(ctx)
	if err == nil && !c.timed { // nothing to find out, and nothing copied
		c.running = false
		c.settle(ctx, Outcome{})
		c.settled = true
		return v, nil
	}
	o := c.outcome(ctx, err).Judged()
	c.running = false // from here on fn, and the judge of its error, have not panicked
	c.settle(ctx, o)
	c.settled = true
	if err != nil {
		return zero, err
	}
	return v, nil
}

// call is one admission of Do and what its outcome needs.
type call struct {
	permit   Permit
	timed    bool
	deadline time.Time // ctx's; zero = none
	given    time.Duration
	entered  time.Time
	running  bool
	settled  bool
}

func (c *call) begin(ctx context.Context, g Guard) {
	if t, ok := g.(Timed); ok {
		c.timed = t.WantsTook()
	}
	if deadline, ok := ctx.Deadline(); ok {
		// A deadline that passed before its timer noticed is still one: 0 would say that there is none.
		c.timed, c.deadline, c.given = true, deadline, max(1, time.Until(deadline))
	}
}

func (c *call) enter() {
	if c.timed {
		c.entered = time.Now()
	}
	c.running = true
}

// outcome finds the verdict. The deadline is compared with the end instant, since a context's timer may be late.
func (c *call) outcome(ctx context.Context, err error) Outcome {
	o := Outcome{Err: err, Given: c.given}
	var end time.Time
	if c.timed {
		end = time.Now()
		o.Took = max(0, end.Sub(c.entered))
	}
	if err == nil {
		return o
	}
	switch by := ctx.Err(); {
	case by == nil:
		if !c.deadline.IsZero() && !end.Before(c.deadline) {
			o.Verdict = CallerExpired
		}
	case ended.Is(by, context.DeadlineExceeded):
		o.Verdict = CallerExpired
	default:
		o.Verdict = CallerCancelled
	}
	return o
}

func (c *call) settle(ctx context.Context, o Outcome) {
	_ = c.permit.Settle(ctx, o) // feeds events only, and there are none here
}

// unwind settles what a panic or runtime.Goexit left behind; after a normal return the permit is zero and nothing is left.
func (c *call) unwind(ctx context.Context) {
	if c.settled {
		return
	}
	o := Outcome{Verdict: NotRun, Given: c.given}
	if c.running {
		o.Verdict = Panicked
		if c.timed {
			o.Took = max(0, time.Since(c.entered))
		}
	}
	settled := false
	defer func() {
		if !settled {
			_ = recover() // Settle's own panic must not replace the one that unwinds
		}
	}()
	c.settle(ctx, o)
	settled = true
}
