package pipeline

import (
	"context"
	"math"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/limit"
	"github.com/fairlead/fairlead/internal/reading"
	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
)

// call is one call through a plan: the state that run, DoDetached and unwind share. It lives on the caller's stack.
type call struct {
	plan        *plan
	caller      context.Context // what Do was given: guards settle under it
	ctx         context.Context // the same, or under the total timeout: guards and backoffs wait under it
	total       *limit.Ctx
	limit       *limit.Ctx // what limits the attempt under way: its own context, or total; nil = nothing
	report      *Report    // nil = nobody asked
	operationID string

	loop    retry.Loop
	looping bool // loop has begun
	outer   leaf.Permit

	began, entered int64           // on the plan's clock, where timed
	ended          int64           // when fn returned last
	start          time.Time       // began, for events
	reading        reading.Instant // of real time, for those who share it …
	fresh          bool            // … while nobody may have waited since
	deadline       int64           // the caller's; math.MaxInt64 = none
	given          time.Duration
	took           time.Duration // in fn, all attempts
	timed          bool
	waited         time.Duration // in guards' Acquire and in backoffs, where report is wanted

	runs      int  // of fn
	admitting bool // the guards of an attempt are asked
	running   bool // fn
	// abandoned: the last run was detached, and given up on.
	abandoned bool
	owner     kind         // whose limit c.limit is: kindAttemptTimeout or kindTimeout
	outcome   leaf.Outcome // what the guards of the attempt under way are told when it ends
	found     leaf.Verdict // the last run's, before its error's Judge
	cut       bool         // the total timeout was over when it ended
	failure   error        // fn's last failure, as the retry sees it
	pending   *layer       // the guard that just refused …
	refusal   error        // … and what it said
	endedBy   error        // the context's error, where that kept fn from running
	final     error        // the call's result before it is mapped; nil = success
	refused   bool         // a guard refused, by the engine's own knowledge, never by the error's shape
	by        kind         // the last guard that did
	unsent    retry.Reason // why the loop would not begin
	finished  bool
	heard     bool // call_started
	untold    bool // the last run's attempt_finished
	told      bool // call_finished

	disposition Disposition
	delay       time.Duration // slept since the last run
}

// begin checks the caller's context, starts the total timeout, and asks the breaker outside the retry.
func (c *call) begin(ctx context.Context, p *plan, opts []Option) bool {
	c.plan, c.caller, c.ctx, c.deadline = p, ctx, ctx, math.MaxInt64
	safety := c.declared(opts)
	deadline, hasDeadline := ctx.Deadline()
	c.timed = hasDeadline || p.total != nil || p.attempt != nil || p.observe != nil || c.report != nil ||
		(len(p.timed) > 0 && p.wantsTook())
	if c.timed {
		c.startClock(deadline, hasDeadline)
	}
	if p.observe != nil {
		c.tellStarted()
		c.fresh = false
	}
	if (p.retry == nil || p.total != nil) && ctx.Err() != nil { // else BeginIn asks
		c.endedBy = ended.Err(ctx)
		return c.stop(c.endedBy)
	}
	if p.total != nil {
		c.startTotal()
	}
	if p.retry != nil {
		if err := p.retry.BeginIn(c.ctx, safety, &c.loop); err != nil {
			if why, ok := err.(*retry.Error); ok { // itself: further in it may be the cause of a context that ended
				c.unsent = why.Reason
			} else if c.ctx.Err() != nil {
				c.endedBy = err
			}
			return c.stop(err)
		}
		c.looping = true
	}
	if p.outside != nil {
		var err error
		began := c.waitBegins()
		c.outer, err = p.outside.guard.Acquire(c.ctx)
		c.fresh = false
		c.waitEnds(began)
		if err != nil {
			if !c.noteEnded(err) {
				c.noteRefusal(kindBreaker, err)
			}
			return c.stop(err)
		}
	}
	return true
}

// waitBegins and waitEnds measure what the report tells as Waited.
func (c *call) waitBegins() (began int64) {
	if c.report != nil {
		began = c.plan.clock.Now()
	}
	return began
}

func (c *call) waitEnds(began int64) {
	if c.report != nil {
		c.waited += max(0, time.Duration(c.plan.clock.Now()-began))
	}
}

func (c *call) startClock(deadline time.Time, hasDeadline bool) {
	if c.plan.observe != nil {
		c.began, c.start = c.plan.clock.Both()
	} else {
		c.began = c.plan.clock.Now()
	}
	if c.plan.clock.Real() {
		c.reading, c.fresh = reading.At(c.began), true
	}
	if hasDeadline {
		c.deadline = c.plan.clock.At(deadline)
		c.given = max(1, time.Duration(clock.Add(c.deadline, -time.Duration(c.began)))) // 0 would mean none
	}
}

// startTotal derives the context that the whole call waits under.
func (c *call) startTotal() {
	spec := c.plan.total.SpecAt(c.reading)
	c.total = limit.New(c.caller, c.plan.clock, clock.Add(c.began, spec.Limit), spec)
	c.ctx = c.total
	if c.deadline == math.MaxInt64 || spec.Limit < c.given {
		c.given = spec.Limit
	}
}

// enter starts the attempt's clock and gives the context that fn gets: the caller's with the attempt's limit or, where the
// total timeout comes no later, one that the total's own timer ends: never two timers for one instant.
func (c *call) enter() context.Context {
	switch {
	case c.looping && c.fresh:
		c.loop.SentAt(c.reading)
	case c.looping:
		c.loop.Sent()
	}
	c.runs++
	c.admitting, c.refused, c.abandoned = false, false, false
	if !c.timed {
		c.running = true
		return c.ctx
	}
	if c.fresh {
		c.entered = c.reading.Nanoseconds()
	} else {
		c.entered = c.plan.clock.Now()
	}
	c.running, c.untold = true, c.plan.observe != nil
	return c.limited()
}

func (c *call) limited() context.Context {
	c.limit, c.owner = c.total, kindTimeout
	if c.plan.attempt == nil {
		return c.ctx
	}
	spec := c.plan.attempt.SpecAt(c.reading)
	at := clock.Add(c.entered, spec.Limit)
	parent := c.ctx
	if c.total == nil || at < c.total.At() { // equal instants belong to the outer one
		c.owner, parent = kindAttemptTimeout, c.caller
	}
	c.limit = limit.New(parent, c.plan.clock, at, spec)
	return c.limit
}

// leave settles the attempt, outermost guard last, and says whether it succeeded.
func (c *call) leave(a *admission, err error) bool {
	c.fresh = false
	if err != nil || c.timed || c.runs > 1 {
		c.conclude(err)
	}
	c.running = false
	c.endLimit()
	if c.fresh {
		c.fresh = a.settleAt(c.plan.guards, c.caller, c.outcome, c.reading)
	} else {
		a.settle(c.caller, c.outcome)
	}
	if c.report != nil {
		c.note(err)
	}
	c.delay = 0
	if c.plan.observe != nil {
		c.tellAttempt(c.outcome.Took)
	}
	return err == nil
}

// conclude makes the attempt's outcome; that of a first run which succeeded and was not timed is the zero Outcome.
func (c *call) conclude(err error) {
	c.outcome = leaf.Outcome{Err: err, Given: c.given}
	var end int64
	if c.timed {
		end = c.plan.clock.Now()
		c.ended = end
		c.outcome.Took = max(0, time.Duration(end-c.entered))
	}
	took := c.outcome.Took
	c.failure = err
	if err != nil {
		c.judge(end)
	} else if c.timed && c.plan.clock.Real() {
		c.reading, c.fresh = reading.At(end), true
	}
	c.took += took // not where a Judge has panicked: panicked counts it then
}

// endLimit ends the attempt's own context; the total's lives on.
func (c *call) endLimit() {
	if c.limit != nil && c.limit != c.total {
		c.limit.End()
	}
	c.limit = nil
}

// judge finds the verdict on a failure, and what the retry sees of it: a limit of ours that fired is a timeout.Error.
func (c *call) judge(end int64) {
	o := &c.outcome
	c.found = c.verdict(end)
	o.Verdict = c.found
	if c.found == leaf.TimedOut {
		if c.total != nil { // it may be over as well: the outermost expired limit is the one named
			c.cut, _ = c.total.Ended(end)
		}
		name, limit := c.limit.Limit()
		c.failure = timedOut(name, limit, c.returned(o.Err))
	}
	if refusal.Plain(o.Err) {
		if _, ok := o.Err.(leaf.Judge); !ok { // most failures have no say in it
			return
		}
	}
	*o = o.Judged()
}

// returned is what fn itself returned: nothing, where the call gave up on it.
func (c *call) returned(err error) error {
	if c.abandoned {
		return nil
	}
	return err
}

// verdict decides who ended the attempt, by what its own context recorded or, where that never armed a timer, by the
// earliest deadline at or before the end instant. The caller's Err() is asked only where the attempt ran under the
// caller's own context: that is then the record.
func (c *call) verdict(end int64) leaf.Verdict {
	var by error
	if c.limit != nil {
		record := c.limit
		if c.owner == kindTimeout {
			record = c.total
		}
		var fired bool
		if fired, by = record.Ended(end); fired {
			c.cut = c.owner == kindTimeout
			if c.cut {
				return leaf.CallerExpired
			}
			return leaf.TimedOut
		}
	} else {
		by = c.caller.Err()
		if by == nil && end >= c.deadline && c.timed {
			by = context.DeadlineExceeded
		}
	}
	switch {
	case by == nil:
		return leaf.Returned
	case ended.Is(by, context.DeadlineExceeded):
		return leaf.CallerExpired
	default:
		return leaf.CallerCancelled
	}
}

// timedOut names the outermost expired limit: an inner limit's error is replaced, never wrapped.
func timedOut(name string, limit time.Duration, err error) error {
	if inner, ok := err.(*timeout.Error); ok && inner != nil {
		err = inner.Err
	}
	return &timeout.Error{Name: name, Limit: limit, Err: err}
}

// note reports the attempt.
func (c *call) note(err error) {
	c.report.History = append(c.report.History, Attempt{
		Number: c.runs, Began: max(0, time.Duration(c.entered-c.began)), Took: c.outcome.Took, Delay: c.delay, Err: err,
	})
}
