package pipeline

import (
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf/retry"
)

// tell fills in what every event has.
func (c *call) tell(at int64, e *Event) {
	e.Time, e.Pipeline, e.Operation = c.time(at), c.plan.name, c.operationID
	c.plan.observe(c.caller, *e)
}

// time is at, as far from the call's start as the clock says: a step of the wall clock moves no event within a call.
func (c *call) time(at int64) time.Time { return c.start.Add(time.Duration(at - c.began)) }

// tellStarted and tellAttempt, as account below, write their event where the observer gets it: it is told of these three in
// every call, and a copy of what was just written is what an event costs most.
func (c *call) tellStarted() {
	c.heard = true // also where the observer panics
	c.plan.observe(c.caller, Event{Kind: CallStarted, Time: c.start, Pipeline: c.plan.name, Operation: c.operationID})
}

func (c *call) tellAttempt(took time.Duration) {
	c.untold = false // also where the observer panics
	c.plan.observe(c.caller, Event{
		Kind: AttemptFinished, Time: c.time(c.ended), Pipeline: c.plan.name, Operation: c.operationID,
		Attempt: c.runs, Took: took, Err: c.failure,
	})
}

// account fills the report and tells the last events.
func (c *call) account(err error, reason retry.Reason) {
	if c.report == nil && c.plan.observe == nil {
		return
	}
	now := c.reading.Nanoseconds()
	if !c.fresh {
		now = c.plan.clock.Now()
	}
	elapsed := max(0, time.Duration(now-c.began))
	layer, wait := "", time.Duration(0)
	if err != nil {
		layer, wait = c.blamed(err)
	}
	if r := c.report; r != nil {
		r.Disposition, r.Attempts, r.Reason, r.Layer, r.Wait = c.disposition, c.runs, reason, layer, wait
		r.Elapsed, r.Waited = elapsed, c.waited
		r.Last = c.failure
	}
	if c.plan.observe == nil {
		return
	}
	if reason != 0 {
		c.tell(now, &Event{Kind: RetryStopped, Attempt: c.runs, Reason: reason, Wait: wait})
	}
	c.told = true // also where the observer panics
	c.plan.observe(c.caller, Event{
		Kind: CallFinished, Time: c.time(now), Pipeline: c.plan.name, Operation: c.operationID,
		Layer: layer, Attempt: c.runs, Wait: wait, Reason: reason, Took: elapsed, Err: err, Disposition: c.disposition,
	})
}

// blamed is who refused, and the wait that was asked for, in a call that failed with err.
func (c *call) blamed(err error) (layer string, wait time.Duration) {
	wait = hinted(err)
	if c.disposition == Deferred { // ReturnLast leaves the error without it
		wait = max(wait, c.loop.Wait())
	}
	if c.refused {
		layer = c.by.String()
	}
	return layer, wait
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
