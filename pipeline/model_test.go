package pipeline_test

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// model is the rules of DESIGN.md, sections 1, 3 and 4, for one call: written as plainly as possible, with instants in
// place of contexts, timers and goroutines. It knows the scenario in advance, so that "who ended this" is a comparison.
//
// Where DESIGN.md is silent it follows the engine, so that a change is seen: a cooldown that refuses without a wait refuses a
// later attempt too; a refusal that came out of fn is no hint; while fn has never run, an opted-in retry takes no token; the
// first refusal is no stop of the retry (Reason 0); retry_stopped comes right before call_finished; a cooldown's
// wait is a rejection for observers only where it was not waited for; Report.Last is nil after a success, and its
// Disposition goes by who had ended fn, also where fn returned a failure that is never retried.
type model struct {
	sc *scenario
	plan

	now    time.Duration
	left   time.Duration // when the caller goes away
	due    time.Duration // the caller's deadline
	total  time.Duration // when the total timeout fires
	given  time.Duration
	askedN map[layer]int

	runs    int           // of fn
	tries   int           // runs, and refusals that count against MaxAttempts
	last    error         // fn's last failure
	real    error         // the last one that was no refusal, and not the context's own
	delay   time.Duration // before the next try
	slept   time.Duration // before the next run
	reserve bool          // a token is taken, and undecided

	ender   who           // who ended the call, where it was ended
	refusal error         // the call's last word: a guard's refusal, fn never ran
	verdict leaf.Verdict  // of the last run
	took    time.Duration // inside fn, of all runs
	owed    entry         // the last run's attempt_finished, where something unwinds before it is told
	unwinds string        // what unwinds the caller's goroutine: a panic's value, or "goexit"
	late    bool          // fn returned after its context had ended

	trace  []entry
	report pipeline.Report
	err    error
}

const never = time.Duration(math.MaxInt64)

// who ended something; the outer ones first, since equal instants belong to them.
type who uint8

const (
	nobody who = iota
	callerLeft
	callerDue
	totalFired
	attemptFired
)

// over says who had ended the call at now. own is when the attempt's own timeout fires, if there is one.
func (m *model) over(own time.Duration) who {
	first, at := nobody, never
	for i, end := range []time.Duration{m.left, m.due, m.total, own} {
		if end <= m.now && end < at {
			first, at = who(i+1), end
		}
	}
	return first
}

// ended is the error that says so: it matches the context's Err and Cause.
func (m *model) ended(w who) error {
	switch w {
	case callerLeft:
		return errors.Join(context.Canceled, errLeft)
	case callerDue:
		return errors.Join(context.DeadlineExceeded, errDue)
	default:
		return &timeout.Error{Name: "total", Limit: totalLimit}
	}
}

// until is the deadline of the context that guards (own = never) and fn get; 0 = none.
func (m *model) until(own time.Duration) time.Duration {
	if end := min(m.due, m.total, own); end < never {
		return end
	}
	return 0
}

// lasts lets a step's time pass; false = an end cut it.
func (m *model) lasts(s step, own time.Duration) bool {
	if s.leavesIn > 0 {
		m.left = min(m.left, m.now+s.leavesIn)
	}
	until, end := m.now+s.takes, min(m.left, m.due, m.total, own)
	if s.heeds && end < until {
		m.now = max(m.now, end)
		return false
	}
	m.now = until
	if s.leaves {
		m.left = min(m.left, m.now)
	}
	return true
}

func (m *model) add(e entry) { e.at = m.now; m.trace = append(m.trace, e) }

// predict plays sc on p.
func predict(sc *scenario, p plan) *model {
	m := &model{sc: sc, plan: p, askedN: map[layer]int{}, left: never, due: never, total: never}
	if sc.deadline > 0 {
		m.due = sc.deadline
	}
	if sc.overdue {
		m.due = -time.Millisecond
	}
	if sc.gone {
		m.left = 0
	}
	if sc.leavesAt > 0 {
		m.left = sc.leavesAt
	}
	m.add(entry{what: "call_started"})
	err := m.call()
	if m.reserve { // never sent
		m.add(entry{what: "cancel"})
	}
	if m.unwinds != "" {
		if m.owed.what != "" {
			m.add(m.owed)
		}
		m.add(entry{what: "call_finished", err: sc.tell(pipeline.ErrPanicked)})
		return m
	}
	m.err = m.result(err)
	if m.report.Reason != 0 {
		m.add(entry{what: "retry_stopped", word: m.report.Reason.String()})
	}
	m.add(entry{what: "call_finished", err: sc.tell(m.err)})
	m.report.Elapsed, m.report.Attempts = m.now, m.runs
	if err != nil {
		m.report.Last = m.last
	}
	m.report.Disposition = m.disposition(m.err)
	m.report.Wait, _ = rejection.RetryAfter(m.err)
	m.report.Wait = max(0, m.report.Wait)
	return m
}

// call is start check, total timeout, the breaker outside, and what is inside of it.
func (m *model) call() error {
	if w := m.over(never); w != nobody {
		return m.cut(w)
	}
	if m.has(total) {
		m.total = m.now + totalLimit
	}
	if end := m.until(never); end != 0 {
		m.given = end - m.now
	}
	if !m.outside {
		return m.loop()
	}
	switch how, err := m.ask(breaking); how {
	case ended:
		return m.cut(m.over(never))
	case refused:
		m.rejected(breaking, err)
		return m.refuse(breaking, err, 0)
	case unwound:
		return nil
	}
	err := m.loop()
	m.settle([]layer{breaking}, m.operation(err))
	return err
}

// operation is the one outcome of a call for the breaker outside the retry.
func (m *model) operation(err error) leaf.Outcome {
	o := leaf.Outcome{Verdict: m.verdict, Err: err, Took: m.took}
	switch {
	case m.runs == 0:
		o.Verdict = leaf.NotRun
		return o
	case m.verdict == leaf.Panicked:
		return o
	case m.unwinds != "": // a guard's panic: the last run is all there is to judge
		o.Err = m.last
	case m.ender != nobody:
		o.Verdict = verdicts[m.ender]
	}
	return judged(o)
}

// result is what the caller gets for what stopped the call.
func (m *model) result(err error) error {
	switch {
	case m.refusal != nil:
		return m.mapped(err)
	case err != nil && m.ender == totalFired:
		return &timeout.Error{Name: "total", Limit: totalLimit, Err: err}
	case rejection.Is(err):
		return &pipeline.RanError{Err: err}
	}
	return err
}

func (m *model) disposition(err error) pipeline.Disposition {
	switch {
	case err == nil:
		return pipeline.Succeeded
	case m.refusal != nil:
		return pipeline.Rejected
	case m.ender == callerLeft:
		return pipeline.Cancelled
	case m.ender == callerDue, m.ender == totalFired:
		return pipeline.Expired
	case m.report.Reason == retry.RetryAfterExceedsDeadline, m.report.Reason == retry.RetryAfterExceedsMaximumDelay:
		return pipeline.Deferred
	}
	return pipeline.Failed
}

// mapped is OnRejected's rule: whatever it returns, the refusal stays reachable, with its wait, and stays a rejection.
func (m *model) mapped(err error) error {
	if m.mapping == noMapper {
		return err
	}
	m.add(entry{what: "on_rejected", err: m.sc.tell(err)})
	answer := m.mapping.answer()
	if answer == nil {
		return err
	}
	return &mappedRefusal{answer, err, m.mapping != mapsVeto}
}

type mappedRefusal struct {
	answer, refusal error
	rejected        bool
}

func (e *mappedRefusal) Error() string   { return "mapped" }
func (e *mappedRefusal) Unwrap() []error { return []error{e.answer, e.refusal} }
func (e *mappedRefusal) Rejected() bool  { return e.rejected }
