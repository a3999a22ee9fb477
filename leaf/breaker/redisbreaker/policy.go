package redisbreaker

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/internal/breaking"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// policy is a Config in force and what the scripts need of it. It never changes.
type policy struct {
	breaker.Config // with its defaults
	judge          breaking.Judge

	window []any // ARGV[15…23] of luaRecord
}

// newPolicy makes the policy of a Config that the local breaker has found valid and completed.
func newPolicy(filled breaker.Config, minReporters int) *policy {
	p := &policy{Config: filled, judge: breaking.Judge{
		SlowCall: filled.SlowCall, BlameAfter: filled.BlameAfter, IsFailure: filled.IsFailure, Ignore: filled.Ignore,
	}}
	calls, within := filled.Window.Size()
	tenth := int64(0)
	if within > 0 {
		tenth = max(1, micros(within/10)) // rounded down: nothing outlives the window
	}
	rate, slowRate := exact(filled.FailureRate), "0"
	if filled.SlowCall > 0 {
		slowRate = exact(filled.SlowRate)
	}
	p.window = []any{
		fmt.Sprintf("@%d/%d", calls, tenth), tenth, calls, filled.MinCalls, rate, filled.FailureCount, filled.Consecutive,
		slowRate, minReporters,
	}
	return p
}

// exact is the shortest text that gives the same float64 again, in Lua too.
func exact(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// micros is d as a number that Lua holds exactly, rounded down.
func micros(d time.Duration) int64 { return min(int64(d/time.Microsecond), 1<<52) }

// microsUp is micros rounded up: an open time is never shorter than it was asked for.
func microsUp(d time.Duration) int64 {
	if d%time.Microsecond > 0 {
		return micros(d) + 1
	}
	return micros(d)
}

// jitter is the draw that an opening would use, -1 where none is wanted.
func (p *policy) jitter() (u float64) {
	if !p.OpenJitter {
		return -1
	}
	if p.Rand == nil {
		return rand.Float64()
	}
	defer func() {
		if recover() != nil || !(u >= 0) { // NaN too: a broken source must not break the open time
			u = 0
		}
		u = min(u, 1)
	}()
	return p.Rand()
}

// firstOpening is the open time of an opening of a closed circuit, before jitter and after it.
func (p *policy) firstOpening() (open, wait int64) {
	open = microsUp(p.OpenFor)
	u := p.jitter()
	if u < 0 || open < 2 {
		return open, open
	}
	half := open / 2
	return open, open - half + min(int64(u*float64(half)), half-1)
}

// lease is ARGV[13] of luaAdmit.
func (p *policy) lease() int64 {
	switch {
	case p.ProbeLease == breaker.NoLease:
		return -1
	case p.ProbeLease == 0:
		return 0
	}
	return max(1, micros(p.ProbeLease))
}

// local is the Config of the breaker underneath: it is told verdicts that were judged already, and its changes are told by
// the shared one.
func local(cfg breaker.Config, changed func(breaker.Change)) breaker.Config {
	cfg.IsFailure, cfg.Ignore, cfg.OnChange = nil, nil, changed
	return cfg
}
