package ratelimit

import (
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

var ops = flag.Int("ops", 100_000, "operations of the random model test")

// handClock runs its timers in the goroutine that moves it, one instant after the other.
type handClock struct {
	clockwork.Clock // the rest is not used
	now             time.Time
	timers          []*handTimer
}

type handTimer struct {
	clockwork.Timer
	clock *handClock
	at    time.Time
	f     func()
}

func (c *handClock) Now() time.Time                  { return c.now }
func (c *handClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }
func (c *handClock) Until(t time.Time) time.Duration { return t.Sub(c.now) }
func (c *handClock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	t := &handTimer{clock: c, at: c.now.Add(d), f: f}
	c.timers = append(c.timers, t)
	return t
}

func (t *handTimer) Stop() bool {
	i := slices.Index(t.clock.timers, t)
	if i >= 0 {
		t.clock.timers = slices.Delete(t.clock.timers, i, i+1)
	}
	return i >= 0
}

func (c *handClock) advance(d time.Duration) {
	end := c.now.Add(d)
	for {
		var next *handTimer
		for _, t := range c.timers {
			if !t.at.After(end) && (next == nil || t.at.Before(next.at)) {
				next = t
			}
		}
		if next == nil {
			break
		}
		next.Stop()
		c.now = next.at
		next.f()
	}
	c.now = end
}

// naive is a bucket that is looked at every time something happens. What it holds is counted in shares of which time brings
// rate per nanosecond and of which a token is per: no state of the implementation has the same shape.
type naive struct {
	rate, per, burst int64
	holds            int64
	line             []*naiveWaiter
	now              int64
}

type naiveWaiter struct {
	n, last int64
	w       *waiter
	served  bool
	dropped bool
}

func (m *naive) serve() {
	for len(m.line) > 0 && m.holds >= m.line[0].n*m.per {
		m.holds -= m.line[0].n * m.per
		m.line[0].served = true
		m.line = m.line[1:]
	}
	m.holds = min(m.holds, m.burst*m.per)
}

// wait is how long n more would take.
func (m *naive) wait(n int64) int64 {
	for _, w := range m.line {
		n += w.n
	}
	return max(0, (n*m.per-m.holds+m.rate-1)/m.rate)
}

func (m *naive) advance(d int64) {
	for end := m.now + d; m.now < end; {
		step := end - m.now
		if len(m.line) > 0 {
			step = min(step, max(0, (m.line[0].n*m.per-m.holds+m.rate-1)/m.rate))
		}
		if step > 0 && m.burst*m.per-m.holds < step*m.rate && len(m.line) == 0 {
			m.holds = m.burst * m.per
		} else {
			m.holds += step * m.rate
		}
		m.now += step
		m.serve()
	}
}

func (m *naive) refund(n int64) {
	m.holds = min(m.burst*m.per, m.holds+n*m.per)
	m.serve()
}

func (m *naive) update(rate, per, burst int64) {
	g := gcd(per, rate)
	m.holds = min(m.holds*per/m.per/g*g, burst*per) // dropped: less than a unit of 1/(rate/g) ns
	m.rate, m.per, m.burst = rate, per, burst
	line := m.line
	m.line = nil
	for _, w := range line {
		if w.n > burst || m.now+max(1, m.wait(w.n)) > w.last {
			w.dropped = true
		} else {
			m.line = append(m.line, w)
		}
	}
	m.serve()
}

func TestRandomOperationsEqualTheNaiveModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	config := func() (rate, per, burst int64) {
		rate = 1 + rnd.Int64N(12)
		return rate, rate * (1000 + rnd.Int64N(5_000_000)) / (1 + rnd.Int64N(rate)), 1 + rnd.Int64N(9)
	}
	rate, per, burst := config()
	per = max(per, rate*1000)
	c := &handClock{now: start}
	l := MustNew(Config{Rate: int(rate), Per: time.Duration(per), Burst: int(burst), Clock: c})
	m := &naive{rate: rate, per: per, burst: burst, holds: burst * per}
	var waiting []*naiveWaiter // served or not, not taken up
	fail := func(i int, what string, args ...any) {
		t.Helper()
		t.Fatalf("seed %d, operation %d: "+what, append([]any{seed, i}, args...)...)
	}
	check := func(i int, what string) {
		t.Helper()
		_, tokens, queued := l.look()
		want := float64(m.holds/m.per) + float64(m.holds%m.per)/float64(m.per)
		if queued != len(m.line) || tokens-want > 1e-9 || want-tokens > 1e-9 {
			fail(i, "%s: %v tokens, %d queued; want %v, %d", what, tokens, queued, want, len(m.line))
		}
		for _, w := range waiting {
			select {
			case <-w.w.ready:
				if !w.served && !w.dropped || w.served != (w.w.err == nil) {
					fail(i, "%s: %d tokens out of turn, or refused for no reason (%v)", what, w.n, w.w.err)
				}
			default:
				if w.served || w.dropped {
					fail(i, "%s: %d tokens are due or refused, and nobody says so", what, w.n)
				}
			}
		}
	}
	for i := range *ops {
		n := 1 + rnd.Int64N(m.burst)
		interval := m.per/m.rate + 1
		switch op := rnd.IntN(20); {
		case op < 5:
			wait := m.wait(n)
			err := l.AllowN(int(n))
			if (wait == 0) != (err == nil) {
				fail(i, "allow %d: %v, want a wait of %d", n, err, wait)
			}
			if err == nil {
				m.holds -= n * m.per
			} else if got := waitOf(t, err); int64(got) != wait {
				fail(i, "allow %d: wait %d, want %d", n, got, wait)
			}
			check(i, "allow")
		case op < 10 && len(waiting) < 12:
			most := rnd.Int64N(20 * interval)
			wait := m.wait(n)
			if rnd.IntN(4) == 0 {
				most = max(0, wait-rnd.Int64N(2)) // on the edge
			}
			w, err := l.join(n, time.Duration(most))
			switch {
			case wait == 0:
				if w != nil || err != nil {
					fail(i, "join %d: %v, want it at once", n, err)
				}
				m.holds -= n * m.per
			case wait <= most:
				if w == nil {
					fail(i, "join %d within %d: %v, want a wait of %d", n, most, err, wait)
				}
				nw := &naiveWaiter{n: n, last: m.now + most, w: w}
				m.line, waiting = append(m.line, nw), append(waiting, nw)
			default:
				if got := waitOf(t, err); int64(got) != wait {
					fail(i, "join %d: wait %d, want %d", n, got, wait)
				}
			}
			check(i, "join")
		case op < 15:
			d := rnd.Int64N(2 * interval)
			if w := m.wait(0); rnd.IntN(3) == 0 && w > 0 && len(m.line) > 0 {
				d = m.wait(0) - rnd.Int64N(2) // exactly due, or a nanosecond early
			}
			if rnd.IntN(500) == 0 {
				d = int64(time.Hour)
			}
			c.advance(time.Duration(d))
			m.advance(d)
			check(i, "advance")
		case op < 17 && len(waiting) > 0:
			at := rnd.IntN(len(waiting))
			w := waiting[at]
			waiting = slices.Delete(waiting, at, at+1)
			if (w.served || w.dropped) && rnd.IntN(2) == 0 {
				continue // takes up what it got
			}
			l.leave(w.w)
			switch {
			case w.served:
				m.refund(w.n)
			case !w.dropped:
				m.line = slices.DeleteFunc(m.line, func(o *naiveWaiter) bool { return o == w })
				m.serve()
			}
			check(i, "leave")
		case op == 17:
			if err := l.Settle(bg, 0, leaf.Outcome{Verdict: leaf.NotRun}); err != nil {
				fail(i, "settle: %v", err)
			}
			m.refund(1)
			check(i, "refund")
		case op == 18 && rnd.IntN(10) == 0:
			rate, per, burst := config()
			per = max(per, rate*1000)
			err := l.Update(Config{Rate: int(rate), Per: time.Duration(per), Burst: int(burst), Clock: c})
			require.NoError(t, err)
			m.update(rate, per, burst)
			check(i, "update")
		case op == 19 && len(m.line) == 0 && m.wait(1) == 0 && rnd.IntN(20) == 0:
			if !l.Allow() { // a bucket from which nothing was taken has not noticed the time that it is called back from
				fail(i, "allow before a jump")
			}
			c.now = c.now.Add(-50 * 365 * 24 * time.Hour)
			m.now, m.holds = m.now-int64(50*365*24*time.Hour), m.burst*m.per
			check(i, "jump")
			if errors.Is(l.AllowN(0), ErrLimited) || !l.Allow() {
				fail(i, "jump: not full")
			}
			m.holds -= m.per
			check(i, "allow after a jump")
			c.now = c.now.Add(50 * 365 * 24 * time.Hour)
			m.now, m.holds = m.now+int64(50*365*24*time.Hour), m.burst*m.per
			check(i, "jump forward")
		}
		if len(m.line) == 0 && len(c.timers) > 0 {
			fail(i, "a timer is armed for nobody")
		}
	}
}
