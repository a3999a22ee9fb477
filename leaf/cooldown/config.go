package cooldown

import (
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/jonboulle/clockwork"
)

// Config of a [Cooldown]. Zero fields mean the default.
type Config struct {
	// Name is named in errors; "" is allowed.
	Name string
	// Max is the longest time ahead that a hint may close the way; 0 = 60 s; else positive.
	Max time.Duration
	// Clock; nil = real time.
	Clock clockwork.Clock
}

const defaultMax = 60 * time.Second

// filled is cfg with its defaults, or everything that is wrong with it.
func (cfg Config) filled() (Config, error) {
	bad := check.List{Name: cfg.Name}
	if cfg.Max < 0 {
		bad.Bad("cooldown", "Max", cfg.Max, "0 (60s) or a positive duration")
	}
	if cfg.Clock != nil && check.Nil(cfg.Clock) {
		bad.Bad("cooldown", "Clock", check.Type(cfg.Clock), "nil (real time) or a clock")
	}
	if cfg.Max == 0 {
		cfg.Max = defaultMax
	}
	return cfg, bad.Err()
}
