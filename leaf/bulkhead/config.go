package bulkhead

import (
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/jonboulle/clockwork"
)

// Config of a [Bulkhead].
type Config struct {
	// Name is named in errors; "" is allowed.
	Name string
	// MaxConcurrent is the number of slots; required, from 1.
	MaxConcurrent int
	// MaxWait is how long a call may wait for a slot; 0 = fail at once; else positive.
	MaxWait time.Duration
	// MaxQueue is how many may wait at once; 0 = as many as wait; else from 1. Without MaxWait it must be 0.
	MaxQueue int
	// Clock; nil = real time.
	Clock clockwork.Clock
}

// check is everything that is wrong with cfg.
func (cfg Config) check() error {
	bad := check.List{Name: cfg.Name}
	if cfg.MaxConcurrent < 1 {
		bad.Bad("bulkhead", "MaxConcurrent", cfg.MaxConcurrent, "1 or more")
	}
	if cfg.MaxWait < 0 {
		bad.Bad("bulkhead", "MaxWait", cfg.MaxWait, "0 (fail at once) or a positive duration")
	}
	switch {
	case cfg.MaxQueue < 0:
		bad.Bad("bulkhead", "MaxQueue", cfg.MaxQueue, "0 (as many as wait) or more")
	case cfg.MaxQueue > 0 && cfg.MaxWait == 0:
		bad.Bad("bulkhead", "MaxQueue", cfg.MaxQueue, "0 without MaxWait, or a MaxWait: nobody would ever be in the queue")
	}
	if cfg.Clock != nil && check.Nil(cfg.Clock) {
		bad.Bad("bulkhead", "Clock", check.Type(cfg.Clock), "nil (real time) or a clock")
	}
	return bad.Err()
}

// slots is MaxConcurrent as the word counts it. Nobody can hold 2^61 slots, so the cap shows nowhere.
func (cfg Config) slots() int64 { return min(int64(cfg.MaxConcurrent), 1<<61) }
