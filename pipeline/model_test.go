package pipeline_test

import (
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

	unwinds string // what unwinds the caller's goroutine: a panic's value, or "goexit"
	late    bool   // fn returned after its context had ended
	outer   leaf.Outcome
	trace   []entry
	report  pipeline.Report
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
	m.call()
	return m
}

// call is the whole call.
func (m *model) call() {
	m.add(entry{what: "call_started"})
	err := m.begin()
	if m.unwinds != "" {
		return
	}
	if m.report.Disposition == pipeline.Rejected && m.mapping != noMapper {
		err = m.mapped(err)
	}
	m.report.Elapsed = m.now
	m.add(entry{what: "call_finished", err: m.sc.tell(err)})
	m.report.Last = m.last
	if err == nil {
		m.report.Disposition = pipeline.Succeeded
	}
	m.result(err)
}

func (m *model) result(err error) { m.add(entry{what: "result", err: m.sc.tell(err)}) }

// begin is the call without its rim: start check, total timeout, the breaker outside.
func (m *model) begin() error {
	if w := m.over(never); w != nobody {
		return m.interrupted(w)
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
	if err, admitted := m.ask(breaking); !admitted {
		return err
	}
	m.outer = leaf.Outcome{Verdict: leaf.NotRun}
	err := m.loop()
	if m.runs == 0 {
		m.outer.Err = err
	} else if m.unwinds == "" {
		m.outer.Err = err
	}
	m.settle([]layer{breaking}, m.outer)
	return err
}

// ask asks one guard. What is not admitted is the call's last word, unless the retry thinks otherwise.
func (m *model) ask(l layer) (err error, admitted bool) {
	if w := m.over(never); w != nobody {
		return m.interrupted(w), false
	}
	m.askedN[l]++
	began, n, s := m.now, m.askedN[l], m.sc.ask(l, m.askedN[l])
	m.add(entry{what: "acquire", layer: l.String(), n: n})
	whole := m.lasts(s, never)
	m.report.Waited += m.now - began
	switch {
	case !whole:
		m.add(entry{what: "left", layer: l.String(), n: n})
		return m.interrupted(m.over(never)), false
	case s.then == panics:
		m.unwinds = boom
		return nil, false
	case s.then == exits:
		m.unwinds = "goexit"
		return nil, false
	case s.err != nil:
		m.add(entry{what: "refused", layer: l.String(), n: n})
		return s.err, false
	}
	m.add(entry{what: "admitted", layer: l.String(), n: n})
	return nil, true
}
