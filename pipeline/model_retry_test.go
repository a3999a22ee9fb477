package pipeline_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/rejection"
)

// failed is the retry's judgement on fn's failure.
func (m *model) failed(err error, asked time.Duration) (final error, again bool) {
	parent := m.over(never) // only the parent decides whether another attempt makes sense
	_, nested := errors.AsType[*retry.Error](err)
	m.ender = parent
	switch {
	case !m.has(retrying):
		return m.last, false
	case rejection.Is(err) && m.runs == 1:
		return err, false
	case rejection.Is(err):
		return m.stop(retry.Refused, err, asked), false
	case nested, m.permanent(err):
		return m.last, false
	case parent == callerLeft && errors.Is(err, context.Canceled), parent != nobody && errors.Is(m.last, context.DeadlineExceeded):
		if m.real == nil { // the context's own error is no real failure, unless there is no other
			m.real = m.last
		}
		return m.cut(parent), false
	}
	m.real = m.last
	switch {
	case parent != nobody:
		return m.cut(parent), false
	case m.tries >= maxAttempts:
		return m.stop(retry.AttemptsExhausted, nil, asked), false
	}
	m.delay = max(backoff, asked)
	if reason := m.fits(asked); reason != 0 {
		return m.stop(reason, nil, cmp.Or(asked, m.delay)), false
	}
	return m.schedule(asked)
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
		asked, m.delay = max(asked, wait), max(m.delay, wait)
		if reason := m.fits(wait); reason != 0 {
			return m.deferred(reason, cooling, wait), false
		}
	}
	if !m.outside {
		if open := m.peek(breaking); open != nil {
			m.rejected(breaking, open)
			return m.refuse(breaking, open, retry.Refused), false
		}
	}
	if !m.reserve && m.runs > 0 { // while fn has never run, what will be sent is a first attempt
		if m.sc.broke {
			m.add(entry{what: "no_token"})
			return m.stop(retry.RetryBudgetExhausted, nil, asked), false
		}
		m.add(entry{what: "reserve"})
		m.reserve = true
	}
	m.add(entry{what: "retry_scheduled", n: m.runs + 1, delay: m.delay, wait: asked})
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
	return m.sc.peek(l, m.runs, m.now)
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
	wait := lowerBound(l, refusal)
	if l == cooling && m.runs > 0 && wait > 0 { // no attempt is consumed, and the reservation kept
		m.delay = wait
		if reason := m.fits(wait); reason != 0 {
			return m.deferred(reason, refusal, wait), false
		}
		m.add(entry{what: "retry_scheduled", n: m.runs + 1, delay: wait, wait: wait})
		return m.sleep()
	}
	m.tries++
	m.rejected(l, refusal)
	m.delay = max(backoff, wait)
	optedIn := m.has(retrying) && m.over(never) == nobody && (l == bulk && m.onFull || l == limiting && m.onLimited) && refusal != error(errStore)
	reason := m.fits(wait)
	if m.tries >= maxAttempts {
		reason = retry.AttemptsExhausted
	}
	switch {
	case !optedIn && m.tries == 1:
		return m.refuse(l, refusal, 0), false // there was nothing to retry
	case !optedIn || reason != 0 && m.runs > 0:
		return m.refuse(l, refusal, retry.Refused), false
	case reason != 0:
		return m.refuse(l, refusal, reason), false
	}
	return m.schedule(wait)
}

// lowerBound is the wait that a refusal asks for. A bulkhead's is an upper bound, for headers only.
func lowerBound(l layer, refusal error) time.Duration {
	wait, _ := rejection.RetryAfter(refusal)
	if l == bulk {
		return 0
	}
	return wait
}

func (m *model) rejected(l layer, refusal error) {
	wait, _ := rejection.RetryAfter(refusal)
	m.add(entry{what: "rejected", layer: l.String(), err: m.sc.tell(refusal), wait: wait})
	m.report.Layer = l.String()
}

// refuse is a guard's refusal as the call's last word: unchanged where fn never ran, else no rejection.
func (m *model) refuse(l layer, refusal error, r retry.Reason) error {
	if m.runs > 0 {
		return m.stop(r, refusal, lowerBound(l, refusal))
	}
	m.report.Reason, m.refusal = r, refusal
	return refusal
}

// deferred is the end of the loop because a cooldown's wait does not fit.
func (m *model) deferred(r retry.Reason, refusal error, wait time.Duration) error {
	m.rejected(cooling, refusal)
	return m.stop(r, nil, wait)
}

// stop is the end of the retry loop for a reason.
func (m *model) stop(r retry.Reason, stop error, wait time.Duration) error {
	m.report.Reason = r
	return &retry.Error{Attempts: m.runs, Reason: r, Last: m.real, Stop: stop, Wait: wait}
}

// cut is the end of the call because w ended a wait of it, or fn. The last failure stays reachable.
func (m *model) cut(w who) error {
	m.ender = w
	if m.tries == 0 {
		return m.ended(w)
	}
	return m.stop(retry.ContextEnded, m.ended(w), 0)
}
