package pipeline

import (
	"context"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/reading"
	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
)

// admission is what one attempt holds: a permit per guard, outermost first. It lives on the caller's stack; a detached
// attempt has one of its own, since its callback may outlive the call.
type admission struct {
	permits [maxGuards]leaf.Permit
	held    int
	late    uint8 // permits that an abandoned callback settles when it really ends, as bits
}

// admit asks the guards in order. A guard that refuses settles the guards before it with NotRun; after the last one the
// context is checked once more, so that no dead work is started.
func (c *call) admit(a *admission) bool {
	c.admitting = true
	c.fresh = c.fresh && c.runs == 0
	began := c.waitBegins()
	guards := c.plan.guards
	for i := range guards {
		var err error
		if at := guards[i].at; at != nil {
			if !c.fresh && guards[i].reads { // the others only say whether they waited
				c.reading, c.fresh = c.plan.clock.Reading(), true
			}
			var fresh bool
			a.permits[i], fresh, err = at.AcquireAt(c.ctx, c.reading)
			c.fresh = c.fresh && fresh
		} else {
			a.permits[i], err = guards[i].guard.Acquire(c.ctx)
			c.fresh = false
		}
		if err != nil {
			c.fresh = false // a backoff may follow
			c.waitEnds(began)
			if !c.noteEnded(err) {
				c.pending, c.refusal = &guards[i], err
			}
			a.settle(c.caller, c.notRun(err))
			return false
		}
		a.held = i + 1
	}
	c.waitEnds(began)
	if c.mayBeOver() && c.ctx.Err() != nil {
		c.endedBy = ended.Err(c.ctx)
		a.settle(c.caller, c.notRun(c.endedBy))
		return false
	}
	if c.looping {
		if final := c.loop.Ready(); final != nil {
			a.settle(c.caller, c.notRun(final))
			return c.stop(final)
		}
	}
	return true
}

// mayBeOver is false where ctx was asked just now, and nothing has happened since: no guard was, begin asks the caller's context, and
// the loop the one under the total timeout.
func (c *call) mayBeOver() bool {
	return len(c.plan.guards) > 0 || c.plan.outside != nil || c.total != nil && !c.looping
}

// notRun is what guards are told that admitted a call whose fn did not run.
func (c *call) notRun(why error) leaf.Outcome {
	return leaf.Outcome{Verdict: leaf.NotRun, Err: why, Given: c.given}
}

// noteEnded says whether err is the context's own: a wait that ctx ended, and no refusal.
func (c *call) noteEnded(err error) bool {
	by := c.ctx.Err()
	if by == nil || !ended.Is(err, by) || refusal.Is(err) {
		return false
	}
	c.endedBy = err
	return true
}

// settle tells the guards in reverse order. It counts down first: when a Settle panics, unwind goes on with the next.
// A Settle's own error feeds the guard's hooks, never the call.
func (a *admission) settle(ctx context.Context, o leaf.Outcome) {
	for a.held > 0 {
		a.held--
		if a.late&(1<<a.held) != 0 {
			continue
		}
		_ = a.permits[a.held].Settle(ctx, o)
	}
}

// settleAt is settle with a reading of real time, as long as nobody may have waited since it was made. It says whether that
// is still so.
func (a *admission) settleAt(guards []layer, ctx context.Context, o leaf.Outcome, now reading.Instant) (fresh bool) {
	for fresh = true; fresh && a.held > 0 && guards[a.held-1].at != nil; {
		a.held--
		switch p := &a.permits[a.held]; {
		case a.late&(1<<a.held) != 0:
		case guards[a.held].quiet:
			_ = p.Settle(ctx, o)
		default:
			fresh, _ = p.SettleAt(ctx, o, now)
		}
	}
	fresh = fresh && a.held == 0
	a.settle(ctx, o)
	return fresh
}
