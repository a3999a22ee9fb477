package redislimit

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/guardtest"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// The conformance suite runs on the local and the Redis guard alike.
func TestConformance(t *testing.T) {
	cfg := ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 4}
	waiting := cfg
	waiting.MaxWait = 1000 * time.Hour
	limiter := func(cfg ratelimit.Config, change ...func(*Options)) func(testing.TB) leaf.Guard {
		return func(t testing.TB) leaf.Guard { return on(t).limiter(cfg, change...) }
	}
	ahead := func(o *Options) { o.Prefetch = 3 }
	t.Run("limiter", func(t *testing.T) {
		guardtest.Run(t, guardtest.Config{New: limiter(cfg), Waiting: limiter(waiting), Capacity: 4, Rounds: 60})
	})
	t.Run("prefetch", func(t *testing.T) {
		guardtest.Run(t, guardtest.Config{New: limiter(cfg, ahead), Waiting: limiter(waiting, ahead), Capacity: 4, Rounds: 30})
	})
	t.Run("quota", func(t *testing.T) {
		guardtest.Run(t, guardtest.Config{New: func(t testing.TB) leaf.Guard { return on(t).quota(5) }, Capacity: 5, Rounds: 30})
	})
}
