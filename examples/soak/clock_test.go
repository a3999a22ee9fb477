package soak

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
)

// jumper is real time (a bubble's, in a bubble) that can be set: its timers go on, as a machine's do when its clock is set.
type jumper struct {
	clockwork.Clock
	offset atomic.Int64
}

func newJumper() *jumper { return &jumper{Clock: clockwork.NewRealClock()} }

func (j *jumper) Now() time.Time                  { return j.Clock.Now().Add(time.Duration(j.offset.Load())) }
func (j *jumper) Since(t time.Time) time.Duration { return j.Now().Sub(t) }
func (j *jumper) Until(t time.Time) time.Duration { return t.Sub(j.Now()) }

// span is how much time can have passed for a guard at most, and how often its state may have become void, since the phase
// began.
type span struct {
	mu     sync.Mutex
	began  time.Time
	ahead  time.Duration // all jumps forward
	back   time.Duration // all jumps back that are none to another time
	resets int           // jumps to an earlier time
}

// year is from where a jump back is one to another time.
const year = 365 * 24 * time.Hour

func (s *span) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.ahead, s.back, s.resets = time.Now(), 0, 0, 0
}

// jump is told before the clock is.
func (s *span) jump(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case d > 0:
		s.ahead += d
	case d < -year:
		s.resets++
	default:
		s.back -= d
	}
}

func (s *span) passed() (d time.Duration, resets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.began) + s.ahead, s.resets
}

func (s *span) lag() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back
}
