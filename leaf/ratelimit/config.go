package ratelimit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/follow"
	"github.com/jonboulle/clockwork"
)

// Config of a [Limiter]. Zero fields mean the default.
type Config struct {
	// Name is named in errors; "" is allowed.
	Name string
	// Rate is tokens per Per; required, from 1. Per/Rate below 1 µs is refused.
	Rate int
	// Per is the time in which Rate tokens are produced; 0 = 1 s; else positive.
	Per time.Duration
	// Burst is the most tokens the bucket holds, and what it starts with; 0 = max(1, Rate); else from 1.
	// A bucket so large that the interval between two tokens could not be kept to one part in 10^9 is refused; that
	// takes more than 2^29 tokens. A quota holds at most 2^62-1.
	Burst int
	// MaxWait is how long Wait and Acquire may wait; 0 = refuse at once; else positive. A wait of exactly MaxWait fits.
	MaxWait time.Duration
	// Clock; nil = real time. A quota reads no clock.
	Clock clockwork.Clock

	told follow.Field[int] // of Burst: its default follows Rate
}

// written is cfg as its author wrote it: a Burst that was told and left alone follows Rate again.
func (cfg Config) written() Config {
	cfg.Burst, cfg.told = cfg.told.Written(cfg.Burst), follow.Field[int]{}
	return cfg
}

// filled is a refilled bucket's cfg with its defaults and its arithmetic, or everything that is wrong with it.
func (cfg Config) filled() (Config, policy, error) {
	cfg = cfg.written()
	bad := check.List{Name: cfg.Name}
	if cfg.Per < 0 {
		bad.Bad("ratelimit", "Per", cfg.Per, "0 (1s) or a positive duration")
	}
	if cfg.Per == 0 {
		cfg.Per = time.Second
	}
	switch most := int64(cfg.Per / time.Microsecond); {
	case cfg.Rate < 1:
		bad.Bad("ratelimit", "Rate", cfg.Rate, "1 or more")
	case cfg.Per > 0 && int64(cfg.Rate) > most:
		bad.Bad("ratelimit", "Rate", cfg.Rate, fmt.Sprintf("at most one per µs, that is %d per %v", most, cfg.Per))
	}
	if cfg.Burst < 0 {
		bad.Bad("ratelimit", "Burst", cfg.Burst, "0 (the Rate) or more")
	}
	cfg.told = follow.Tell(&cfg.Burst, cmp.Or(cfg.Burst, max(1, cfg.Rate)))
	if cfg.MaxWait < 0 {
		bad.Bad("ratelimit", "MaxWait", cfg.MaxWait, "0 (refuse at once) or a positive duration")
	}
	checkClock(&bad, cfg)
	if err := bad.Err(); err != nil {
		return cfg, policy{}, err
	}
	p, ok := newPolicy(int64(cfg.Rate), int64(cfg.Per), int64(cfg.Burst))
	if !ok {
		bad.Bad("ratelimit", "Burst", cfg.Burst, fmt.Sprintf("a smaller one: at %d per %v it is more than can be counted exactly", cfg.Rate, cfg.Per))
	}
	return cfg, p, bad.Err()
}

// filledQuota is the same for a bucket that is never refilled.
func (cfg Config) filledQuota() (Config, policy, error) {
	cfg = cfg.written()
	bad := check.List{Name: cfg.Name}
	if cfg.Rate != 0 {
		bad.Bad("ratelimit", "Rate", cfg.Rate, "0: a quota is never refilled")
	}
	if cfg.Per != 0 {
		bad.Bad("ratelimit", "Per", cfg.Per, "0: a quota is never refilled")
	}
	if cfg.MaxWait != 0 {
		bad.Bad("ratelimit", "MaxWait", cfg.MaxWait, "0: a quota is never refilled, so that no wait would help")
	}
	if cfg.Burst < 1 || int64(cfg.Burst) > maxQuota {
		bad.Bad("ratelimit", "Burst", cfg.Burst, fmt.Sprintf("1 to %d, the tokens of the quota", int64(maxQuota)))
	}
	checkClock(&bad, cfg)
	return cfg, quotaPolicy(int64(cfg.Burst)), bad.Err()
}

func checkClock(bad *check.List, cfg Config) {
	if cfg.Clock != nil && check.Nil(cfg.Clock) {
		bad.Bad("ratelimit", "Clock", check.Type(cfg.Clock), "nil (real time) or a clock")
	}
}
