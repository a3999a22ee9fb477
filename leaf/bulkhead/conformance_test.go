package bulkhead_test

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/guardtest"
	"github.com/jonboulle/clockwork"
)

func TestConformance(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New: func(testing.TB) leaf.Guard { return bulkhead.MustNew(bulkhead.Config{Name: "db", MaxConcurrent: 4}) },
		Waiting: func(testing.TB) leaf.Guard {
			return bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 4, MaxWait: time.Hour, MaxQueue: 12})
		},
		Capacity: 4,
		Slots:    true,
	})
}

func TestConformanceOnAStoppedClock(t *testing.T) {
	guardtest.Run(t, guardtest.Config{
		New: func(testing.TB) leaf.Guard { return bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1}) },
		Waiting: func(testing.TB) leaf.Guard {
			return bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1, MaxWait: time.Hour, Clock: clockwork.NewFakeClock()})
		},
		Capacity: 1,
		Slots:    true,
	})
}
