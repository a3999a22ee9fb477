package retry

import (
	"math/rand/v2"
	"time"
)

// The model is the rules of the package written down once more, naively: one call is a list of tries, time is a number, and
// every rule is a line. All durations are multiples of 250 µs except those of fn (3 ns more) and of the cancellation
// (1 ns more), so that no two things ever happen at the same instant but those that are meant to.

type modelConfig struct {
	attempts               int // as in Config
	ladder                 []time.Duration
	jitter                 string
	u4                     int // four times what Rand gives
	maxDelay               time.Duration
	maxAfter               time.Duration // 0 = maxDelay
	elapsed, reserve       time.Duration
	valid                  time.Duration
	nested, bare, noBudget bool
	tokens                 int
	deadline, cancel       time.Duration // 0 = none
}

// try is what happens in one try.
type try struct {
	refused bool // by a guard, before fn
	retried bool
	full    bool // the guard's wait is an upper bound
	hint    time.Duration
	took    time.Duration
	kind    string        // what fn returns
	peeked  bool          // a breaker is found open after the failure
	before  time.Duration // a cooldown asks for it before the sleep
	after   time.Duration // and after it
}

type modelResult struct {
	final  string // success, unchanged, refusal, last, stop
	try    int    // whose error it is: the unchanged one, the refusal, or Last
	reason Reason
	runs   int
	stopBy int           // the try whose refusal is Stop; -1 = none
	wait   time.Duration // that the stop tells …
	asked  time.Duration // … and what of it was asked for, which nobody may shorten
	at     time.Duration // when the call returned
	ran    []time.Duration
	slept  []time.Duration
	left   int // tokens
}

type model struct {
	c     modelConfig
	now   time.Duration
	tries int
	runs  int
	last  int // try; -1 = none
	ref   int // try of the last refusal; -1 = none
	held  bool
	delay time.Duration
	above time.Duration
	wait  time.Duration // that was asked for, of the delay to come
	hint  time.Duration // that is asked for now
	res   modelResult
}

func (m *model) ended() bool {
	return m.c.deadline > 0 && m.now >= m.c.deadline || m.c.cancel > 0 && m.now >= m.c.cancel
}

func (m *model) stop(r Reason, by int, wait time.Duration) bool {
	m.res.reason, m.res.stopBy, m.res.asked = r, by, max(m.hint, m.wait)
	m.res.wait = max(wait, m.res.asked)
	m.release()
	switch {
	case m.runs == 0 && m.ref >= 0 && !(r == ContextEnded && by == inSleep):
		m.res.final, m.res.try = "refusal", m.ref
	case m.runs > 0 && m.c.bare:
		m.res.final, m.res.try = "last", m.last
	default:
		m.res.final, m.res.try = "stop", m.last
	}
	return true
}

const (
	nobody  = -1
	inSleep = -2
)

func (m *model) release() {
	if m.held {
		m.held = false
		m.c.tokens++
	}
}

func (m *model) fitsDeadline(d time.Duration) bool {
	return m.c.deadline == 0 || m.c.deadline-m.now-d >= max(1, m.c.reserve)
}
func (m *model) fitsElapsed(d time.Duration) bool { return m.c.elapsed == 0 || m.now+d <= m.c.elapsed }
func (m *model) fitsValid(d time.Duration) bool   { return m.c.valid == 0 || m.now+d <= m.c.valid }
func (m *model) most() time.Duration {
	if m.c.maxAfter == 0 {
		return m.c.maxDelay
	}
	return m.c.maxAfter
}

// raise is the lower bound: why it does not fit, and the wait that says so.
func (m *model) raise(hint time.Duration) (Reason, time.Duration) {
	m.hint = hint
	need := max(m.delay, hint)
	blame := func(fits func(time.Duration) bool) time.Duration {
		if hint > 0 && !fits(hint) {
			return hint
		}
		return need
	}
	switch {
	case hint > m.most():
		return RetryAfterExceedsMaximumDelay, hint
	case !m.fitsDeadline(need) && hint > 0 && !m.fitsDeadline(hint):
		return RetryAfterExceedsDeadline, hint
	case !m.fitsDeadline(need):
		return RetryDelayExceedsDeadline, need
	case !m.fitsElapsed(need):
		return MaxElapsedExceeded, blame(m.fitsElapsed)
	case !m.fitsValid(need):
		return UnsafeReplay, blame(m.fitsValid)
	}
	m.wait = max(m.wait, hint)
	if hint > 0 {
		d := min(hint+m.above, m.most())
		if m.c.deadline > 0 {
			d = min(d, m.c.deadline-m.now-max(1, m.c.reserve))
		}
		if m.c.elapsed > 0 {
			d = min(d, m.c.elapsed-m.now)
		}
		if m.c.valid > 0 {
			d = min(d, m.c.valid-m.now)
		}
		m.delay = max(need, d)
	}
	return 0, 0
}

func (m *model) decide(hint time.Duration) (Reason, time.Duration) {
	most := m.c.attempts
	if most == 0 {
		most = 3
	}
	if most != Unlimited && m.tries >= most {
		m.hint = hint
		return AttemptsExhausted, hint
	}
	step := min(m.c.ladder[min(m.tries, len(m.c.ladder))-1], m.c.maxDelay)
	u := time.Duration(m.c.u4)
	switch m.c.jitter {
	case "full":
		m.delay, m.above = step*u/4, step*u/4
	case "equal":
		m.delay, m.above = step/2+step/2*u/4, step/2*u/4
	case "proportional": // by a half
		m.delay, m.above = step*(2+u)/4, step*u/4
	case "additive": // of 8 ms
		m.delay, m.above = step+8*time.Millisecond*u/4, min(8*time.Millisecond, step)*u/4
	case "none":
		m.delay, m.above = step, 0
	}
	m.delay, m.wait = min(m.delay, m.c.maxDelay), 0
	return m.raise(hint)
}

func (m *model) judge(i int, t try) (stopped bool) {
	unchanged := func() bool {
		m.res.final, m.res.try = "unchanged", i
		m.release()
		return true
	}
	switch {
	case t.kind == "rejection" && m.runs == 1:
		return unchanged()
	case t.kind == "rejection":
		m.hint = t.hint
		return m.stop(Refused, i, t.hint)
	case t.kind == "permanent", t.kind == "nested" && !m.c.nested:
		return unchanged()
	case t.kind == "ctx" && m.ended(): // else it is a failure like any other
		if m.last < 0 {
			m.last = i
		}
		return m.stop(ContextEnded, nobody, 0)
	case t.kind == "stopped":
		return unchanged()
	}
	m.last, m.ref = i, nobody
	if m.ended() {
		return m.stop(ContextEnded, nobody, 0)
	}
	hint := t.hint
	if t.kind != "throttled" {
		hint = 0
	}
	if why, wait := m.decide(hint); why != 0 {
		return m.stop(why, nobody, wait)
	}
	return false
}

func (m *model) refused(i int, t try) (stopped bool) {
	m.ref = i
	first, hint := m.tries == 0, t.hint
	if t.full {
		hint = 0
	}
	m.hint = hint
	if t.retried && !m.ended() {
		m.tries++
		why, _ := m.decide(hint)
		if why == 0 {
			return false
		}
		if m.runs == 0 {
			return m.stop(why, i, hint)
		}
		return m.stop(Refused, i, hint)
	}
	if first {
		return m.stop(0, i, hint)
	}
	return m.stop(Refused, i, hint)
}

func (m *model) reserveAndSleep(after time.Duration) (stopped bool) {
	if m.runs > 0 && !m.held && !m.c.noBudget {
		if m.c.tokens == 0 {
			return m.stop(RetryBudgetExhausted, nobody, m.wait)
		}
		m.c.tokens--
		m.held = true
	}
	if m.sleep() {
		return true
	}
	if after > 0 {
		if why, wait := m.raise(after); why != 0 {
			return m.stop(why, nobody, wait)
		}
		return m.sleep()
	}
	return false
}

func (m *model) sleep() (stopped bool) {
	end := m.now + m.delay
	m.res.slept = append(m.res.slept, m.delay)
	m.delay, m.wait, m.hint = 0, 0, 0
	if c := m.c.cancel; c > 0 && c <= end {
		m.now = max(m.now, c)
		return m.stop(ContextEnded, inSleep, 0)
	}
	m.now = end
	return false
}

func (m *model) run(tries []try) modelResult {
	m.last, m.ref, m.res.stopBy = nobody, nobody, nobody
	for i, t := range tries {
		m.hint = 0
		if t.refused {
			if m.refused(i, t) || m.reserveAndSleep(0) {
				break
			}
			continue
		}
		m.runs++
		m.tries++
		m.held = false
		m.res.ran = append(m.res.ran, m.now)
		m.now += t.took
		if t.kind == "success" {
			m.res.final, m.res.try = "success", i
			break
		}
		if m.judge(i, t) {
			break
		}
		if t.before > 0 {
			if why, wait := m.raise(t.before); why != 0 {
				m.stop(why, nobody, wait)
				break
			}
		}
		if t.peeked && m.refused(i, try{hint: t.hint}) {
			break
		}
		if m.reserveAndSleep(t.after) {
			break
		}
	}
	m.res.runs, m.res.at, m.res.left = m.runs, m.now, m.c.tokens
	return m.res
}

func randomModel(rng *rand.Rand) (c modelConfig, tries []try) {
	ms := func(n int) time.Duration { return time.Duration(rng.IntN(n)) * time.Millisecond }
	sometimes := func(percent int, d time.Duration) time.Duration {
		if rng.IntN(100) < percent {
			return d + time.Millisecond
		}
		return 0
	}
	c = modelConfig{
		attempts: []int{0, 1, 2, 5, 9, 64, Unlimited}[rng.IntN(7)],
		jitter:   []string{"full", "equal", "proportional", "additive", "none"}[rng.IntN(5)],
		u4:       rng.IntN(4),
		maxAfter: sometimes(50, ms(60)), elapsed: sometimes(20, ms(300)), reserve: sometimes(30, ms(20)),
		valid: sometimes(20, ms(300)), nested: rng.IntN(2) == 0, bare: rng.IntN(8) == 0, noBudget: rng.IntN(5) == 0,
		tokens: 1 + rng.IntN(8), deadline: sometimes(40, ms(300)),
	}
	for range 1 + rng.IntN(4) {
		c.ladder = append(c.ladder, 4*ms(10))
	}
	c.maxDelay = max(c.ladder[0], 4*ms(12), 4*time.Millisecond)
	if c.cancel = sometimes(30, ms(300)); c.cancel > 0 {
		c.cancel++
	}
	if c.attempts == Unlimited && c.deadline == 0 && c.elapsed == 0 {
		c.elapsed = 100 * time.Millisecond
	}
	kinds := []string{"failure", "failure", "failure", "failure", "throttled", "throttled", "success",
		"rejection", "permanent", "nested", "stopped", "ctx"}
	for range 12 {
		t := try{kind: kinds[rng.IntN(len(kinds))], hint: ms(40), took: ms(20) + 3, retried: rng.IntN(4) > 0,
			full: rng.IntN(3) == 0, refused: rng.IntN(5) == 0, peeked: rng.IntN(15) == 0,
			before: sometimes(10, ms(50)), after: sometimes(10, ms(50))}
		tries = append(tries, t)
	}
	return c, append(tries, try{kind: "success", took: 3})
}
