package breaker

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/fairlead/fairlead/internal/breaking"
	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/follow"
	"github.com/fairlead/fairlead/leaf"
)

// policy is a Config that was found valid, with its defaults filled in. It never changes.
type policy struct {
	Config
	judge breaking.Judge
	plain bool // nobody is asked what a failure is, and nothing is slow
}

// following is what Config tells otherwise than it was written, since it depends on other fields: MinCalls on Window,
// Consecutive (whether the default can be reached at all) on MinCalls and FailureRate, SlowRate on SlowCall, MaxOpenFor on OpenFor.
type following struct {
	minCalls, consecutive follow.Field[int]
	slowRate              follow.Field[float64]
	maxOpenFor            follow.Field[time.Duration]
}

// written is cfg as its author wrote it: what was told and left alone depends on the other fields again.
func (cfg Config) written() Config {
	cfg.MinCalls = cfg.told.minCalls.Written(cfg.MinCalls)
	cfg.Consecutive = cfg.told.consecutive.Written(cfg.Consecutive)
	cfg.SlowRate = cfg.told.slowRate.Written(cfg.SlowRate)
	cfg.MaxOpenFor = cfg.told.maxOpenFor.Written(cfg.MaxOpenFor)
	cfg.told = following{}
	return cfg
}

// easy says that o is a success without a second look.
func (p *policy) easy(o leaf.Outcome) bool {
	return p.plain && o.Err == nil && o.Verdict == leaf.Returned
}

// newPolicy fills in the defaults, or finds everything that is wrong with cfg.
func newPolicy(cfg Config) (*policy, error) {
	cfg = cfg.written()
	if err := validate(cfg); err != nil {
		return nil, err
	}
	cfg.Window = cfg.Window.filled()
	cfg.told.minCalls = follow.Tell(&cfg.MinCalls, minCalls(cfg))
	cfg.FailureRate = cmp.Or(cfg.FailureRate, 0.5)
	cfg.told.consecutive = follow.Tell(&cfg.Consecutive, cmp.Or(cfg.Consecutive, 5))
	if cfg.SlowCall > 0 {
		cfg.told.slowRate = follow.Tell(&cfg.SlowRate, cmp.Or(cfg.SlowRate, 0.5))
	}
	cfg.OpenFor = openFor(cfg)
	cfg.OpenGrowth = cmp.Or(cfg.OpenGrowth, 1)
	cfg.told.maxOpenFor = follow.Tell(&cfg.MaxOpenFor, cmp.Or(cfg.MaxOpenFor, max(5*time.Minute, cfg.OpenFor)))
	cfg.Probes = cmp.Or(cfg.Probes, 1)
	cfg.ProbeSuccesses = cmp.Or(cfg.ProbeSuccesses, 1)
	judge := breaking.Judge{SlowCall: cfg.SlowCall, BlameAfter: cfg.BlameAfter, IsFailure: cfg.IsFailure, Ignore: cfg.Ignore}
	return &policy{Config: cfg, judge: judge, plain: cfg.IsFailure == nil && cfg.SlowCall <= 0}, nil
}

// minCalls is clamped to a count window: more could never be reached, and a typo must mean "still protected".
func minCalls(cfg Config) int {
	n := cmp.Or(cfg.MinCalls, 20)
	if cfg.Window.kind == countWindow {
		n = min(n, cfg.Window.calls)
	}
	return n
}

func openFor(cfg Config) time.Duration { return cmp.Or(cfg.OpenFor, 5*time.Second) }

func validate(cfg Config) error {
	l := check.List{Name: cfg.Name}
	need := func(ok bool, field string, value any, want string) {
		if !ok {
			l.Bad("breaker", field, value, want)
		}
	}
	const offOr1 = "breaker.Off, or from 1"
	count := cfg.Window.kind == countWindow && cfg.Window.want() == ""

	need(cfg.Window.want() == "", "Window", cfg.Window, cfg.Window.want())
	need(cfg.MinCalls >= 0, "MinCalls", cfg.MinCalls, "from 1, or 0 for the default")
	need(cfg.FailureRate == 0 || cfg.FailureRate == Off || ratio(cfg.FailureRate), "FailureRate", cfg.FailureRate,
		"above 0 and at most 1, or breaker.Off")
	need(cfg.FailureCount >= Off, "FailureCount", cfg.FailureCount, offOr1)
	need(!count || cfg.FailureCount <= cfg.Window.calls, "FailureCount", cfg.FailureCount,
		fmt.Sprintf("at most the window's %d calls: more can never be reached", cfg.Window.calls))
	need(cfg.Consecutive >= Off, "Consecutive", cfg.Consecutive, offOr1)
	if reach := minCalls(cfg); cfg.FailureRate == Off && reach > 0 {
		need(cfg.Consecutive < reach, "Consecutive", cfg.Consecutive,
			fmt.Sprintf("less than MinCalls, %d, where FailureRate is Off: it could never be reached", reach))
	}
	need(cfg.SlowCall >= Off, "SlowCall", cfg.SlowCall, "positive, or breaker.Off")
	if cfg.SlowCall == 0 || cfg.SlowCall == Off {
		need(cfg.SlowRate == 0, "SlowRate", cfg.SlowRate, "0 where SlowCall is off")
	} else {
		need(cfg.SlowRate == 0 || ratio(cfg.SlowRate), "SlowRate", cfg.SlowRate, "above 0 and at most 1")
	}
	if cfg.FailureRate == Off && cfg.FailureCount <= 0 && cfg.SlowCall <= 0 {
		need(cfg.Consecutive != Off, "FailureRate", "Off, as are Consecutive, FailureCount and SlowCall",
			"one of them: a breaker without a rule never opens")
		need(cfg.Consecutive != 0 || minCalls(cfg) > 5 || minCalls(cfg) < 1, "MinCalls", minCalls(cfg),
			"above 5, the default of Consecutive, where no other rule is on: it could never be reached")
	}
	need(cfg.OpenFor >= 0, "OpenFor", cfg.OpenFor, "positive")
	need(cfg.OpenGrowth == 0 || cfg.OpenGrowth >= 1 && check.Finite(cfg.OpenGrowth), "OpenGrowth", cfg.OpenGrowth,
		"finite and at least 1")
	need(cfg.MaxOpenFor == 0 || cfg.MaxOpenFor >= max(1, openFor(cfg)), "MaxOpenFor", cfg.MaxOpenFor,
		fmt.Sprintf("at least OpenFor, %v", max(1, openFor(cfg))))
	need(cfg.Probes >= 0, "Probes", cfg.Probes, "from 1, or 0 for the default")
	need(cfg.ProbeSuccesses >= 0, "ProbeSuccesses", cfg.ProbeSuccesses, "from 1, or 0 for the default")
	need(cfg.ProbeLease >= NoLease, "ProbeLease", cfg.ProbeLease, "positive, or breaker.NoLease")
	need(cfg.BlameAfter >= Off, "BlameAfter", cfg.BlameAfter, "positive, or breaker.Off")
	need(cfg.Clock == nil || !check.Nil(cfg.Clock), "Clock", check.Type(cfg.Clock), "a clock, or nil for real time")
	return l.Err()
}

// ratio is written so that NaN is none.
func ratio(f float64) bool { return f > 0 && f <= 1 }

// openTime is how long the breaker stays open after so many re-openings in a row, before jitter.
func (p *policy) openTime(reopenings int) time.Duration {
	grown := float64(p.OpenFor) * math.Pow(p.OpenGrowth, float64(reopenings))
	if grown >= float64(p.MaxOpenFor) { // +Inf included; compared as floats, since an int64 could overflow
		return p.MaxOpenFor
	}
	return max(p.OpenFor, time.Duration(math.Round(grown)))
}

// jittered draws from [d/2, d) where OpenJitter asks for it.
func (p *policy) jittered(d time.Duration) time.Duration {
	if !p.OpenJitter || d < 2 {
		return d
	}
	u := 0.0
	if p.Rand == nil {
		u = rand.Float64()
	} else if u = p.Rand(); !(u >= 0) { // NaN too: a broken source must not break the open time
		u = 0
	}
	half := d / 2
	return d - half + min(time.Duration(min(u, 1)*float64(half)), half-1)
}

// lease is how long a probe keeps its slot after an open time of that length; NoLease where it is never counted.
func (p *policy) lease(openTime time.Duration) time.Duration { return cmp.Or(p.ProbeLease, openTime) }
