package pipeline

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
)

// end settles the outer breaker and makes the call's result of what stopped it: then OnRejected, and the end event.
func (c *call) end() error {
	err := c.final
	if err == nil && !c.timed && c.plan.outside == nil { // most calls: nothing is left to do, since a run commits its reservation
		c.finished = true
		return nil
	}
	reason := c.unsent
	if c.looping {
		reason = c.loop.Reason()
		c.loop.End()
	}
	waitEnded := c.endedBy != nil || reason == retry.ContextEnded
	var how ending
	if err != nil {
		how = c.ending(waitEnded)
		c.disposition = c.dispose(reason, how)
	}
	if c.total != nil {
		c.total.End()
	}
	if c.plan.outside != nil {
		c.fresh = false
		_ = c.outer.Settle(c.caller, c.operation(err, how))
	}
	if err != nil {
		err = c.result(err, how)
	}
	if c.timed {
		c.account(err, reason)
	}
	c.finished = true
	return err
}

// ending is whose time was over, if that is what stopped the call.
type ending uint8

const (
	notEnded ending = iota
	callerCancelled
	callerExpired
	totalExpired
)

// ending finds out from the last run's verdict or, where a wait was ended, from the context that was waited under.
func (c *call) ending(wait bool) ending {
	switch {
	case c.runs > 0 && c.found == leaf.CallerCancelled:
		return callerCancelled
	case c.runs > 0 && c.cut:
		return totalExpired
	case c.runs > 0 && c.found == leaf.CallerExpired:
		return callerExpired
	case !wait:
		return notEnded
	}
	by := c.caller.Err()
	if c.total != nil {
		fired, parent := c.total.Ended(c.plan.clock.Now())
		if fired {
			return totalExpired
		}
		by = parent
	}
	if ended.Is(by, context.DeadlineExceeded) {
		return callerExpired
	}
	return callerCancelled
}

// dispose names how a call that did not succeed ended.
func (c *call) dispose(reason retry.Reason, how ending) Disposition {
	switch {
	case how == callerCancelled:
		return Cancelled
	case how != notEnded:
		return Expired
	case c.runs == 0 && c.refused:
		return Rejected
	case reason == retry.RetryAfterExceedsDeadline, reason == retry.RetryAfterExceedsMaximumDelay,
		reason == retry.MaxElapsedExceeded && c.loop.Wait() > 0:
		return Deferred
	default:
		return Failed
	}
}

// operation is the one outcome of the whole call: what the retry loop returns, for a breaker outside it.
func (c *call) operation(err error, how ending) leaf.Outcome {
	o := leaf.Outcome{Verdict: leaf.Returned, Err: err, Took: c.took, Given: c.given}
	switch {
	case c.runs == 0:
		o.Verdict = leaf.NotRun
		return o
	case err == nil:
		return o
	case how == callerCancelled:
		o.Verdict = leaf.CallerCancelled
	case how != notEnded:
		o.Verdict = leaf.CallerExpired
	default:
		o.Verdict = c.found
	}
	return o.Judged()
}

// result is what the caller gets for err. The engine's own knowledge decides, never the error's shape: a call whose fn never
// ran may be mapped and stays a refusal; one whose fn ran never reads as a refusal.
func (c *call) result(err error, how ending) error {
	switch {
	case c.disposition == Rejected:
		if mapper := c.plan.onRejected; mapper != nil {
			return mapRefusal(func(err error) error { return mapper(c.caller, err) }, err)
		}
		return err
	case how == totalExpired:
		return c.totalExpired(err)
	case c.runs > 0 && refusal.Is(err):
		return &RanError{Err: err}
	default:
		return err
	}
}

// totalExpired names the total timeout. Of a call that never ran, the bare context error adds nothing.
func (c *call) totalExpired(err error) error {
	name, limit := c.total.Limit()
	if c.runs == 0 {
		return &timeout.Error{Name: name, Limit: limit}
	}
	return timedOut(name, limit, err)
}

// unwind settles what a panic or runtime.Goexit left behind, wherever it came from, while it goes on unwinding. Nothing that
// panics here replaces it. The steps are deferred, so that each of them is made even where one calls runtime.Goexit.
func (c *call) unwind(a *admission) {
	if c.finished {
		return
	}
	inside := c.running
	switch {
	case inside:
		c.panicked()
	case c.admitting:
		why := c.endedBy
		if c.pending != nil {
			why = c.refusal
		}
		c.outcome = c.notRun(why)
	}
	defer c.unwindEvents(inside)
	defer c.unwindOuter(inside)
	defer func() {
		c.endLimit()
		if c.total != nil {
			c.total.End()
		}
		if c.looping {
			quietly(c.loop.End)
		}
	}()
	c.unwindPermits(a)
}

// unwindPermits settles what is held, one round per Settle that does not return.
func (c *call) unwindPermits(a *admission) {
	if a.held == 0 {
		return
	}
	defer c.unwindPermits(a)
	quietly(func() { a.settle(c.caller, c.outcome) })
}

// unwindOuter tells the breaker outside. The judge of fn's error may panic: then it is told the worst.
func (c *call) unwindOuter(inside bool) {
	if c.plan.outside == nil {
		return
	}
	o := leaf.Outcome{Verdict: leaf.Panicked, Took: c.took, Given: c.given}
	defer quietly(func() { _ = c.outer.Settle(c.caller, o) }) // a settled permit settles nothing
	if !inside {
		quietly(func() { _ = c.outer.Settle(c.caller, c.operation(c.failure, notEnded)) })
	}
}

// panicked makes the outcome of a run that did not return.
func (c *call) panicked() {
	c.running = false
	c.outcome = leaf.Outcome{Verdict: leaf.Panicked, Given: c.given}
	if c.timed {
		c.ended = c.plan.clock.Now()
		c.outcome.Took = max(0, time.Duration(c.ended-c.entered))
		c.took += c.outcome.Took
	}
}

// quietly runs f and swallows its panic: another one is under way.
func quietly(f func()) {
	returned := false
	defer func() {
		if !returned {
			_ = recover()
		}
	}()
	f()
	returned = true
}
