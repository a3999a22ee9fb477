package redislimit

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// policy is one configuration and its arithmetic. Time is counted in units of 1/16 µs since 2020, in which doubles, the only
// numbers of Lua, are exact until 2035. A bucket that takes more than two years to fill is counted in grains of 2^k units, so
// that its numbers stay below 2^53, too.
//
// The interval is rounded up to a whole number of grains: never faster than the rate, and slower by less than 1/16 µs per
// token (by less than burst/2^50 of the interval where the grain is not 1 unit).
type policy struct {
	cfg      ratelimit.Config // with its defaults
	quota    bool             // never refilled: a grain is a token
	interval int64            // grains in which one token comes
	full     int64            // grains in which all come: Burst × interval
	grain    int64            // units, a power of two
}

const (
	epoch     = 1_577_836_800_000_000 // 2020-01-01 in µs since 1970
	maxFull   = 1 << 50
	maxQuota  = 1<<53 - 1 // what a Lua number counts
	minGrains = 16        // an interval of at least so many grains is rounded by a sixteenth at most

	never time.Duration = -1 // the Wait of what no time will bring
)

// newPolicy is for a cfg that the local limiter accepts, with its defaults.
func newPolicy(cfg ratelimit.Config) (policy, error) {
	p := policy{cfg: cfg, grain: 1}
	// 1 unit is 125/2 ns.
	num, den := 2*uint64(cfg.Per), 125*uint64(cfg.Rate)
	for {
		p.interval = int64((num-1)/den/uint64(p.grain)) + 1 // the nested floors are one
		if hi, full := bits.Mul64(uint64(p.interval), uint64(cfg.Burst)); hi == 0 && full <= maxFull {
			p.full = int64(full)
			return p, nil
		}
		if p.interval < 2*minGrains {
			bad := check.List{Name: cfg.Name}
			bad.Bad("redislimit", "Burst", cfg.Burst, fmt.Sprintf("a smaller one: at %d per %v it is more than a store can count exactly", cfg.Rate, cfg.Per))
			return p, bad.Err()
		}
		p.grain *= 2
	}
}

func quotaPolicy(cfg ratelimit.Config) (policy, error) {
	bad := check.List{Name: cfg.Name}
	if int64(cfg.Burst) > maxQuota {
		bad.Bad("redislimit", "n", cfg.Burst, fmt.Sprintf("at most %d, what a store can count exactly", int64(maxQuota)))
	}
	return policy{cfg: cfg, quota: true, interval: 1, full: int64(cfg.Burst), grain: 1}, bad.Err()
}

// units writes grains as units; exact, since a grain is a power of two.
func (p *policy) units(grains int64) string {
	return strconv.FormatFloat(float64(grains)*float64(p.grain), 'f', 0, 64)
}

// grains is d in whole grains, rounded down.
func (p *policy) grains(d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(max(0, d)), 2)
	units, _ := bits.Div64(hi, lo, 125)
	return int64(units / uint64(p.grain))
}

// level is what a reply says of the bucket: an instant, and how far it is from full at that instant.
type level struct {
	now int64 // µs since 1970, the server's or the virtual one's
	lag int64 // grains until the bucket is full; of a quota: tokens that are spent
}

// suspect is a TAT that may come from before the clock stepped back: it is further ahead than the bucket is deep. The zero suspect is
// none.
type suspect struct {
	tat, grain int64 // grains since 2020, and of how many units
	since      int64 // µs since 1970: when it was first seen
	used       bool  // it has grown: it is rather somebody's larger bucket
}

// unmoved is for how many µs a TAT must not have moved to be taken for one from before a step: a bucket in steady use moves once an
// interval. The script goes by the same.
func (p *policy) unmoved() int64 { return max(1_000_000, p.interval*p.grain/8) }

// after is what is suspected once s was heard: the same as before, where the TAT has not moved. Up to a second is no step.
func (was suspect) after(s level, p *policy) suspect {
	if p.quota || s.lag <= p.full || saturatingMul(s.lag-p.full, p.grain) <= 16_000_000 {
		return suspect{}
	}
	tat := max(0, s.now-epoch)*16/p.grain + s.lag
	if was.tat == tat && was.grain == p.grain {
		return was
	}
	return suspect{tat: tat, grain: p.grain, since: s.now, used: was.grain == p.grain && (was.used || tat > was.tat)}
}

// level is what there is to wait for at s, where the TAT was rightly suspected: the bucket has been filling since it was first
// seen, and is to be had once it has not moved for so long.
func (was suspect) level(s level, p *policy) level {
	age := min(max(0, s.now-was.since), p.unmoved())
	rest := ((p.unmoved()-age)*16 + p.grain - 1) / p.grain
	return level{now: s.now, lag: p.full + max(rest-p.interval, -age*16/p.grain)}
}

// wait is the time from the level's instant until n tokens can be taken, n may exceed Burst where it includes those in front.
// It is a whole number of µs, because that is how the server's clock ticks, and at least one; never for a quota.
func (p *policy) wait(s level, n int64) time.Duration {
	if p.quota {
		return never
	}
	over := s.lag - p.full // how far the first token of none is away, negative where some are there
	want := saturatingMul(n, p.interval)
	if want > math.MaxInt64-max(0, over) {
		return math.MaxInt64
	}
	units := saturatingMul(want+over, p.grain)
	since := max(0, s.now-epoch)
	units -= int64(uint64(since) * 16 % uint64(p.grain)) // a grain that has begun is over earlier
	µs := (units-1)/16 + 1
	return time.Duration(max(1000, saturatingMul(µs, 1000)))
}

// saturatingMul is for b of 1 and more.
func saturatingMul(a, b int64) int64 {
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// tokens is what the bucket held at the level's instant.
func (p *policy) tokens(s level) float64 {
	held := min(p.full, max(0, p.full-s.lag))
	return float64(held/p.interval) + float64(held%p.interval)/float64(p.interval)
}

// tokensAfter is an estimate of what it holds d later, if nobody took any.
func (p *policy) tokensAfter(s level, d time.Duration) float64 {
	if !p.quota {
		s.lag -= min(p.grains(d), p.full)
	}
	return p.tokens(s)
}
