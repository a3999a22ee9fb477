package ratelimit_test

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/guardtest"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/jonboulle/clockwork"
)

func TestLimiterConformance(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New: func(testing.TB) leaf.Guard {
			return ratelimit.MustNew(ratelimit.Config{Name: "api", Rate: 1, Per: time.Hour, Burst: 4})
		},
		Waiting: func(testing.TB) leaf.Guard {
			return ratelimit.MustNew(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 4, MaxWait: 1000 * time.Hour})
		},
		Capacity: 4,
	})
}

func TestLimiterOnAStoppedClockConformance(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New: func(testing.TB) leaf.Guard {
			return ratelimit.MustNew(ratelimit.Config{Rate: 3, Burst: 7, Clock: clockwork.NewFakeClock()})
		},
		Waiting: func(testing.TB) leaf.Guard {
			return ratelimit.MustNew(ratelimit.Config{Rate: 3, Burst: 7, MaxWait: time.Hour, Clock: clockwork.NewFakeClock()})
		},
		Capacity: 7,
	})
}

func TestQuotaConformance(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New:      func(testing.TB) leaf.Guard { return ratelimit.MustNewQuota("trial", 5) },
		Capacity: 5,
	})
}
