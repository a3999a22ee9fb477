package pipeline

import (
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf/retry"
)

// tell fills in what every event has. Its time is at, as far from the call's start as the clock says: the wall clock is read
// once per call, and a step of it moves no event.
func (c *call) tell(at int64, e *Event) {
	e.Time, e.Pipeline, e.Operation = c.start.Add(time.Duration(at-c.began)), c.plan.name, c.option.operation
	c.plan.observe(c.caller, *e)
}

// account fills the report and tells the last events.
func (c *call) account(err error, reason retry.Reason) {
	if c.report == nil && c.plan.observe == nil {
		return
	}
	now := c.plan.clock.Now()
	elapsed := max(0, time.Duration(now-c.began))
	wait := hinted(err)
	if c.disposition == Deferred { // ReturnLast leaves the error without it
		wait = max(wait, c.loop.Wait())
	}
	layer := ""
	if c.refused && err != nil {
		layer = c.by.String()
	}
	if r := c.report; r != nil {
		r.Disposition, r.Attempts, r.Reason, r.Layer, r.Wait = c.disposition, c.runs, reason, layer, wait
		r.Elapsed, r.Waited = elapsed, c.waited
		r.Last = c.failure
	}
	if c.plan.observe != nil {
		if reason != 0 {
			c.tell(now, &Event{Kind: RetryStopped, Attempt: c.runs, Reason: reason, Wait: wait})
		}
		c.told = true // also where the observer panics
		c.tell(now, &Event{
			Kind: CallFinished, Disposition: c.disposition, Attempt: c.runs, Reason: reason, Layer: layer, Wait: wait, Took: elapsed, Err: err,
		})
	}
}

// hinted is the wait that err carries; 0 = none. The branches of a retry's stop are asked one by one, since it makes a slice
// of them for everybody who asks for both.
func hinted(err error) time.Duration {
	if stop, ok := err.(*retry.Error); ok && stop != nil {
		if wait, ok := stop.RetryAfter(); ok {
			return wait
		}
		return max(hinted(stop.Last), hinted(stop.Stop))
	}
	wait, _ := refusal.RetryAfter(err)
	return max(0, wait)
}

// unwindEvents tells the events of a call that did not return: the attempt's where that is owed, then the call's.
func (c *call) unwindEvents(inside bool) {
	if !c.heard || c.told {
		return
	}
	defer quietly(func() {
		now := c.plan.clock.Now()
		c.tell(now, &Event{
			Kind: CallFinished, Disposition: Failed, Attempt: c.runs, Took: max(0, time.Duration(now-c.began)), Err: ErrPanicked,
		})
	})
	if !c.untold {
		return
	}
	err := c.failure
	if inside {
		err = ErrPanicked
	}
	quietly(func() {
		c.tell(c.ended, &Event{Kind: AttemptFinished, Attempt: c.runs, Took: c.outcome.Took, Err: err})
	})
}
