package limit

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var ops = flag.Int("ops", 100_000, "random operations of the model test, per clock")

// model is a naive Ctx: it keeps what happened and when, and finds every answer from that. Time is in milliseconds.
type model struct {
	now, at      int
	callerAt     int // the caller's deadline; 0 = none
	callerGone   bool
	callerExpiry bool // the caller's deadline passed while it lived

	watched bool  // somebody asked for Done, or saw the end
	seen    error // what the watched context ended with: nil, Canceled, DeadlineExceeded
	ours    bool  // seen is the limit's
	over    bool  // End was called
	closed  bool  // End's cancelling happened
	keeps   int

	decided bool // Ended has given an answer
	fired   bool
	by      error
}

func (m *model) inherits() bool { return m.callerAt > 0 && m.callerAt <= m.at }

func (m *model) caller() error {
	switch {
	case m.callerExpiry:
		return context.DeadlineExceeded
	case m.callerGone:
		return context.Canceled
	}
	return nil
}

// look is what a watched, live context notices by itself.
func (m *model) look() {
	if !m.watched || m.closed || m.seen != nil {
		return
	}
	if !m.inherits() && m.now >= m.at && (m.caller() == nil || m.callerExpiry) {
		m.seen, m.ours = context.DeadlineExceeded, true // the caller's later deadline does not change that
		return
	}
	m.seen = m.caller()
}

func (m *model) tick() {
	m.now++
	if m.callerAt > 0 && m.now == m.callerAt && !m.callerGone {
		m.callerExpiry = true
	}
	m.look()
}

func (m *model) cancelCaller() {
	m.callerGone = true
	m.look()
}

func (m *model) done() {
	if !m.closed {
		m.watched = true
	}
	m.look()
}

func (m *model) err() error {
	if !m.closed && !m.watched && (m.caller() != nil || !m.inherits() && m.now >= m.at) {
		m.watched = true
	}
	m.look()
	if m.seen == nil && m.closed {
		return context.Canceled
	}
	return m.seen
}

func (m *model) end() {
	if m.over || m.closed {
		return
	}
	m.over = true
	if m.watched && m.seen != nil && !m.decided {
		m.decide(m.ours, m.seen)
	}
	m.close()
}

func (m *model) close() {
	if m.over && m.keeps == 0 {
		m.closed = true
	}
}

func (m *model) decide(fired bool, by error) {
	if fired {
		by = nil
	}
	if fired || by != nil {
		m.decided, m.fired, m.by = true, fired, by
	}
}

func (m *model) ended() (bool, error) {
	if m.decided {
		return m.fired, m.by
	}
	switch {
	case m.watched && !m.over && m.seen != nil:
		m.decide(m.ours, m.seen)
	case m.inherits() && m.now >= m.callerAt:
		m.decide(false, context.DeadlineExceeded)
	case !m.inherits() && m.now >= m.at:
		m.decide(true, nil)
	case !m.watched:
		m.decide(false, m.caller())
	}
	return m.fired, m.by
}

func (m *model) keep() {
	m.keeps++
	m.done()
}

func (m *model) release() {
	m.keeps--
	m.close()
}

// TestAgainstModel drives a Ctx and the model with the same random operations, and compares every answer.
func TestAgainstModel(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 1))
		for done := 0; done < *ops && !t.Failed(); {
			done += playModel(t, b, rnd, seed)
		}
		if b.fake != nil {
			require.Zero(t, b.fake.pending.Load())
		}
	})
}

func playModel(t *testing.T, b *testbed, rnd *rand.Rand, seed uint64) (played int) {
	const ms = time.Millisecond
	m := &model{at: 1 + rnd.IntN(12)}
	caller, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if rnd.IntN(2) == 0 {
		m.callerAt = 1 + rnd.IntN(12)
		with, stop := context.WithTimeout(caller, time.Duration(m.callerAt)*ms)
		defer stop()
		caller = with
	}
	c := b.new(caller, time.Duration(m.at)*ms)
	defer c.End()
	var releases []func()
	defer func() {
		for _, release := range releases {
			release()
		}
	}()
	var log []string
	same := func(what string, want, got any) {
		require.Equal(t, want, got, "%s\nseed %d, at %d, caller's deadline %d, operations %v", what, seed, m.at, m.callerAt, log)
	}
	for range 5 + rnd.IntN(30) {
		played++
		op := [...]string{"tick", "tick", "tick", "done", "err", "ended", "cause", "end", "keep", "release", "caller"}[rnd.IntN(11)]
		if rnd.IntN(8) != 0 && (op == "caller" || op == "done" || op == "end") {
			op = "tick" // rare, or nothing lazy would ever be seen
		}
		log = append(log, op)
		switch op {
		case "tick":
			m.tick()
			b.advance(ms)
		case "done":
			m.done()
			same("done", m.err() != nil, closed(c))
		case "err":
			same("err", m.err(), c.Err())
		case "ended":
			wantFired, wantBy := m.ended()
			fired, by := c.Ended(b.clk.Now())
			same("fired", wantFired, fired)
			same("parent", wantBy, by)
		case "cause":
			same("cause", m.cause(), context.Cause(c))
		case "end":
			m.end()
			c.End()
		case "keep":
			m.keep()
			releases = append(releases, Keep(c))
		case "release":
			if n := len(releases); n > 0 {
				m.release()
				releases[n-1]()
				releases[n-1]()
				releases = releases[:n-1]
			}
		case "caller":
			m.cancelCaller()
			cancel(errGone)
			b.advance(0)
		}
	}
	return played
}

func (m *model) cause() error {
	err := m.err()
	switch {
	case err == nil:
		return nil
	case m.seen == nil: // End's
		return context.Canceled
	case m.ours:
		return &testCause{"test", time.Duration(m.at) * time.Millisecond}
	case m.seen == context.Canceled:
		return errGone
	}
	return context.DeadlineExceeded
}
