package pipeline_test

import (
	"context"
	"errors"
	"slices"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

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
	m.add(entry{what: "acquire", layer: l.String(), n: n, until: m.until(never)})
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
			if m.unwinds != "" {
				return nil, false
			}
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
	m.report.Layer = ""
	m.sent()
	m.add(entry{what: "run", n: m.runs, until: m.until(own)})
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
		m.owed = entry{what: "attempt_finished", n: m.runs, took: took, err: m.sc.tell(pipeline.ErrPanicked)}
		m.settle(held, leaf.Outcome{Verdict: leaf.Panicked, Took: took})
		return nil, false
	}
	m.verdict = leaf.Returned
	if err != nil {
		m.verdict = verdicts[w]
	}
	shown := err // what the pipeline makes of it
	if m.verdict == leaf.TimedOut {
		shown = &timeout.Error{Name: "attempt", Limit: attemptLimit, Err: err}
	}
	if err != nil {
		m.last = shown
	}
	m.settle(held, judged(leaf.Outcome{Verdict: m.verdict, Err: err, Took: took}))
	finished := entry{what: "attempt_finished", n: m.runs, took: took, err: m.sc.tell(shown)}
	if m.unwinds != "" {
		m.owed = finished
		return nil, false
	}
	m.add(finished)
	m.report.History = append(m.report.History, pipeline.Attempt{Number: m.runs, Began: began, Took: took, Delay: m.slept, Err: err})
	m.slept = 0
	if err == nil {
		return nil, false
	}
	wait, _ := rejection.RetryAfter(err)
	wait = max(0, wait)
	if wait > 0 && m.has(cooling) && !rejection.Is(err) { // a refusal out of fn says nothing of the other side
		m.add(entry{what: "hint", layer: cooling.String(), wait: wait})
	}
	return m.failed(err, wait)
}

// verdicts say what a failure means when somebody had ended it.
var verdicts = [...]leaf.Verdict{
	nobody: leaf.Returned, callerLeft: leaf.CallerCancelled, callerDue: leaf.CallerExpired,
	totalFired: leaf.CallerExpired, attemptFired: leaf.TimedOut,
}

// judged is what guards are told: a refusal out of fn is ignored, and an error may judge itself.
func judged(o leaf.Outcome) leaf.Outcome {
	if rejection.Is(o.Err) {
		o.Verdict = leaf.Ignored
	}
	if judge, ok := errors.AsType[*asked](o.Err); ok {
		return judge.Judge(o)
	}
	return o
}
