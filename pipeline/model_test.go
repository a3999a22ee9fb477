package pipeline_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// model is the rules of DESIGN.md, sections 1, 3 and 4, for one call: written as plainly as possible, with instants in
// place of contexts, timers and goroutines. It knows the scenario in advance, so that "who ended this" is a comparison.
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
	delay   time.Duration // before the next try
	slept   time.Duration // before the next run
	reserve bool          // a token is taken, and undecided

	ender   who           // who ended the call, where it was ended
	refusal error         // a guard's, while fn has never run
	verdict leaf.Verdict  // of the last run
	took    time.Duration // inside fn, of all runs
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
	if m.unwinds == "" {
		if m.refusal != nil {
			err = m.mapped(err)
		}
		m.add(entry{what: "call_finished", err: sc.tell(err)})
		m.report.Elapsed, m.report.Attempts, m.report.Last = m.now, m.runs, m.last
		m.report.Disposition = m.disposition(err)
	}
	m.err = err
	return m
}

func (m *model) disposition(err error) pipeline.Disposition {
	switch {
	case err == nil:
		return pipeline.Succeeded
	case m.refusal != nil:
		return pipeline.Rejected
	case m.ender == callerLeft:
		return pipeline.Cancelled
	case m.ender == callerDue, m.ender == totalFired, m.report.Reason == retry.RetryDelayExceedsDeadline:
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

// call is start check, total timeout, the breaker outside, and what is inside of it.
func (m *model) call() error {
	if w := m.over(never); w != nobody {
		return m.cut(w)
	}
	if m.has(total) {
		m.total = m.now + totalLimit
	}
	if end := min(m.due, m.total); end < never {
		m.given = end - m.now
	}
	if !m.outside {
		return m.loop()
	}
	switch how, err := m.ask(breaking); how {
	case ended:
		return m.cut(m.over(never))
	case refused:
		return m.rejected(breaking, err)
	case unwound:
		return nil
	}
	err := m.loop()
	o := leaf.Outcome{Verdict: m.verdict, Err: err, Took: m.took}
	switch {
	case m.unwinds != "" && m.runs > 0 && m.verdict == leaf.Panicked:
		o.Err = nil
	case m.runs == 0:
		o.Verdict = leaf.NotRun
	}
	m.settle([]layer{breaking}, o)
	return err
}

func (m *model) loop() error {
	for {
		if err, again := m.try(); !again {
			return err
		}
	}
}

// answer is how a guard takes a call.
type answer uint8

const (
	admitted answer = iota
	refused
	ended   // ctx ended the wait
	unwound // a panic, or runtime.Goexit
)

func (m *model) ask(l layer) (answer, error) {
	if m.over(never) != nobody {
		return ended, nil
	}
	m.askedN[l]++
	began, n, s := m.now, m.askedN[l], m.sc.ask(l, m.askedN[l])
	m.add(entry{what: "acquire", layer: l.String(), n: n})
	whole := m.lasts(s, never)
	m.report.Waited += m.now - began
	switch {
	case !whole:
		m.add(entry{what: "left", layer: l.String(), n: n})
		return ended, nil
	case s.then != 0:
		m.unwind(s.then)
		return unwound, nil
	case s.err != nil:
		m.add(entry{what: "refused", layer: l.String(), n: n})
		return refused, s.err
	}
	m.add(entry{what: "admitted", layer: l.String(), n: n})
	return admitted, nil
}

func (m *model) unwind(t then) {
	m.unwinds = boom
	if t == exits {
		m.unwinds = "goexit"
	}
}

// settle tells the guards that admitted, the last one first. A Settle that panics unwinds once all are told, and never
// replaces what unwinds already.
func (m *model) settle(held []layer, o leaf.Outcome) {
	o.Given = m.given
	for _, l := range slices.Backward(held) {
		e := entry{what: "settle", layer: l.String(), word: o.Verdict.String(), err: m.sc.tell(o.Err), given: o.Given}
		if m.timed() {
			e.took = o.Took
		}
		m.add(e)
		if slices.Contains(m.sc.settlePanics, l) && m.unwinds == "" {
			m.unwinds = settleBoom
		}
	}
}

// timed says that Took is defined: a guard asked for it, or the call has a deadline.
func (m *model) timed() bool { return m.has(breaking) || m.has(total) || m.sc.deadline > 0 }

// try is one attempt: the guards, fn, the verdict.
func (m *model) try() (final error, again bool) {
	var held []layer
	for _, l := range guards {
		if !m.has(l) || l == breaking && m.outside {
			continue
		}
		how, err := m.ask(l)
		switch how {
		case admitted:
			held = append(held, l)
			continue
		case refused:
			m.settle(held, leaf.Outcome{Verdict: leaf.NotRun, Err: err})
			return m.refusedLater(l, err)
		case ended:
			m.settle(held, leaf.Outcome{Verdict: leaf.NotRun, Err: m.ended(m.over(never))})
			return m.cut(m.over(never)), false
		case unwound:
			m.settle(held, leaf.Outcome{Verdict: leaf.NotRun})
			return nil, false
		}
	}
	if w := m.over(never); w != nobody { // after the last guard
		m.settle(held, leaf.Outcome{Verdict: leaf.NotRun, Err: m.ended(w)})
		return m.cut(w), false
	}
	return m.run(held)
}

// run is fn, and what its end means to the guards.
func (m *model) run(held []layer) (final error, again bool) {
	own := never
	if m.has(attempt) {
		own = m.now + attemptLimit
	}
	m.runs++
	m.tries++
	m.sent()
	line := entry{what: "run", n: m.runs}
	if end := min(m.due, m.total, own); end < never {
		line.given = end
	}
	m.add(line)
	s, began := m.sc.run(m.runs), m.now
	whole, err := m.lasts(s, own), s.err
	w := m.over(own)
	m.late = m.late || w != nobody
	if whole || !s.says {
		m.add(entry{what: "ran", n: m.runs})
	} else if err = context.DeadlineExceeded; w == callerLeft {
		err = context.Canceled
	}
	took := m.now - began
	m.took += took
	if s.then != 0 {
		m.unwind(s.then)
		m.verdict = leaf.Panicked
		m.settle(held, leaf.Outcome{Verdict: leaf.Panicked, Took: took})
		return nil, false
	}
	o := leaf.Outcome{Err: err, Took: took}
	if err != nil {
		o.Verdict = [...]leaf.Verdict{
			nobody: leaf.Returned, callerLeft: leaf.CallerCancelled, callerDue: leaf.CallerExpired,
			totalFired: leaf.CallerExpired, attemptFired: leaf.TimedOut,
		}[w]
	}
	if rejection.Is(err) {
		o.Verdict = leaf.Ignored
	}
	if judge, ok := errors.AsType[*asked](err); ok {
		o = judge.Judge(o)
	}
	m.verdict = o.Verdict
	m.settle(held, o)
	if m.unwinds != "" {
		return nil, false
	}
	shown := err // what the pipeline makes of it
	if w == attemptFired && err != nil {
		shown = &timeout.Error{Name: "attempt", Limit: attemptLimit, Err: err}
	}
	m.add(entry{what: "attempt_finished", n: m.runs, took: took, err: m.sc.tell(shown)})
	m.report.History = append(m.report.History, pipeline.Attempt{Number: m.runs, Began: began, Took: took, Delay: m.slept, Err: err})
	m.slept = 0
	if err == nil {
		return nil, false
	}
	m.last = shown
	wait, _ := rejection.RetryAfter(err)
	if wait > 0 && m.has(cooling) {
		m.add(entry{what: "hint", layer: cooling.String(), wait: wait})
	}
	m.report.Wait = max(0, wait)
	return m.failed(err, shown)
}

// failed is the retry's judgement on fn's failure.
func (m *model) failed(err, shown error) (final error, again bool) {
	parent := m.over(never) // only the parent decides whether another attempt makes sense
	switch _, nested := errors.AsType[*retry.Error](err); {
	case rejection.Is(err):
		return &pipeline.RanError{Err: err}, false
	case parent != nobody:
		return m.cut(parent), false
	case !m.has(retrying), nested, m.permanent(err):
		return shown, false
	case m.tries >= maxAttempts:
		return m.stop(retry.AttemptsExhausted, nil, m.report.Wait), false
	}
	m.delay = max(backoff, m.report.Wait)
	if reason := m.fits(m.report.Wait); reason != 0 {
		return m.stop(reason, nil, cmp.Or(m.report.Wait, m.delay)), false
	}
	return m.schedule(m.report.Wait)
}

func (m *model) permanent(err error) bool { return slices.Contains(m.sc.reach(err), "<permanent>") }

// fits says why the delay cannot be slept. asked is the part of it that somebody asked for.
func (m *model) fits(asked time.Duration) retry.Reason {
	left := min(m.due, m.total) - m.now
	switch {
	case asked > maxRetryAfter:
		return retry.RetryAfterExceedsMaximumDelay
	case asked > 0 && asked >= left:
		return retry.RetryAfterExceedsDeadline
	case m.delay >= left:
		return retry.RetryDelayExceedsDeadline
	}
	return 0
}

// schedule looks at cooldown and breaker, takes a token and sleeps.
func (m *model) schedule(asked time.Duration) (final error, again bool) {
	if cooling := m.peek(cooling); cooling != nil {
		wait, _ := rejection.RetryAfter(cooling)
		asked = max(asked, wait)
		m.delay, m.report.Wait = max(m.delay, wait), asked
		if reason := m.fits(wait); reason != 0 {
			return m.stop(reason, cooling, wait), false
		}
	}
	if !m.outside {
		if open := m.peek(breaking); open != nil {
			return m.rejected(breaking, open), false
		}
	}
	if !m.reserve {
		if m.sc.broke {
			m.add(entry{what: "no_token"})
			return m.stop(retry.RetryBudgetExhausted, nil, asked), false
		}
		m.add(entry{what: "reserve"})
		m.reserve = true
	}
	m.add(entry{what: "retry_scheduled", n: m.tries + 1, delay: m.delay, wait: asked})
	return m.sleep()
}

func (m *model) sleep() (final error, again bool) {
	began := m.now
	whole := m.lasts(step{takes: m.delay, heeds: true}, never)
	m.report.Waited += m.now - began
	m.slept += m.now - began
	if !whole {
		return m.cut(m.over(never)), false
	}
	return nil, true
}

func (m *model) peek(l layer) error {
	if !m.has(l) {
		return nil
	}
	return m.sc.peek(l, m.runs)
}

// sent decides the reservation: the first run deposits, a later one commits.
func (m *model) sent() {
	if !m.has(retrying) {
		return
	}
	if m.runs == 1 {
		m.add(entry{what: "deposit"})
		return
	}
	m.add(entry{what: "commit"})
	m.reserve = false
}

// refusedLater is a guard's refusal of an attempt, the first or a later one.
func (m *model) refusedLater(l layer, refusal error) (final error, again bool) {
	wait, _ := rejection.RetryAfter(refusal)
	if l == cooling && m.runs > 0 { // no attempt is consumed, and the reservation kept
		m.delay, m.report.Wait = wait, wait
		if reason := m.fits(wait); reason != 0 {
			return m.stop(reason, refusal, wait), false
		}
		m.add(entry{what: "retry_scheduled", n: m.tries + 1, delay: wait, wait: wait})
		return m.sleep()
	}
	m.tries++
	final = m.rejected(l, refusal)
	if !m.has(retrying) || !(l == bulk && m.onFull || l == limiting && m.onLimited) || refusal == error(errStore) || m.tries >= maxAttempts {
		return final, false
	}
	if l == bulk {
		wait = 0 // an upper bound, for headers only
	}
	m.delay = max(backoff, wait)
	if m.fits(wait) != 0 {
		return final, false
	}
	return m.schedule(wait)
}

// rejected is a guard's refusal as the call's last word: unchanged where fn never ran, else no rejection.
func (m *model) rejected(l layer, refusal error) error {
	wait, _ := rejection.RetryAfter(refusal)
	m.add(entry{what: "rejected", layer: l.String(), err: m.sc.tell(refusal), wait: wait})
	m.report.Layer, m.report.Wait = l.String(), wait
	if m.runs == 0 {
		m.refusal = refusal
		return refusal
	}
	return m.stop(retry.Refused, refusal, wait)
}

// stop is the end of the retry loop for a reason.
func (m *model) stop(r retry.Reason, stop error, wait time.Duration) error {
	m.report.Reason = r
	m.add(entry{what: "retry_stopped", word: r.String()})
	if m.runs == 0 && m.refusal != nil {
		return m.refusal
	}
	return &retry.Error{Attempts: m.runs, Reason: r, Last: m.last, Stop: stop, Wait: wait}
}

// cut is the end of the call because w ended it. The last failure stays reachable.
func (m *model) cut(w who) error {
	m.ender, m.refusal = w, nil
	err := m.ended(w)
	switch {
	case m.runs == 0:
		return err
	case m.has(retrying):
		err = m.stop(retry.ContextEnded, err, 0)
	default:
		err = m.last
	}
	if w == totalFired {
		return &timeout.Error{Name: "total", Limit: totalLimit, Err: err}
	}
	return err
}
