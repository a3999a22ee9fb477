package cooldown

import (
	"math"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
)

// none is no instant: everybody is admitted.
const none = math.MinInt64

// instant is one state; it never changes. A change is a new one, so that a reader gets both halves of one and the same
// state with a single load.
type instant struct {
	cfg   *Config // in force
	until int64   // admits from here on, on the clock's scale; none = always
}

// wait is the time until it admits, 0 = it does. An instant further ahead than Max is what a jump of the clock left behind.
func (s *instant) wait(now int64) time.Duration {
	if s.until == none || s.until <= now || s.until > clock.Add(now, s.cfg.Max) {
		return 0
	}
	return time.Duration(s.until - now) // at most Max: no overflow
}

// hinted is the state after a hint; s itself where the hint moves nothing.
func (s *instant) hinted(now int64, wait time.Duration) *instant {
	wait = min(wait, s.cfg.Max)
	if wait <= s.wait(now) { // also every wait <= 0
		return s
	}
	return &instant{cfg: s.cfg, until: clock.Add(now, wait)}
}

// updated is the state under cfg: the same instant, at most the new Max ahead.
func (s *instant) updated(now int64, cfg *Config) *instant {
	wait := min(s.wait(now), cfg.Max)
	if wait == 0 {
		return &instant{cfg: cfg, until: none}
	}
	return &instant{cfg: cfg, until: clock.Add(now, wait)}
}
