package redisbulkhead

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/guardtest"
)

func TestConformance(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	fresh := func(cfg bulkhead.Config) func(testing.TB) leaf.Guard {
		return func(t testing.TB) leaf.Guard {
			return open(t, client, cfg, Options{Prefix: redistest.Shared(t).Prefix(t), Timeout: calm, LeaseTTL: time.Hour})
		}
	}
	guardtest.Run(t, guardtest.Config{
		New:      fresh(bulkhead.Config{Name: "db", MaxConcurrent: 4}),
		Waiting:  fresh(bulkhead.Config{Name: "db", MaxConcurrent: 4, MaxWait: time.Hour, MaxQueue: 12}),
		Capacity: 4,
		Slots:    true,
		Lag:      time.Second, // a slot whose waiter left in the same moment goes back in the background
		Rounds:   50,
	})
}
