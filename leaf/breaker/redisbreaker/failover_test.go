package redisbreaker

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/stretchr/testify/require"
)

// Section 13, test 19, under the breaker: an open circuit refuses on without its master, and those who come after the promotion
// find it open.
func TestAKilledMasterOfTheClusterClosesNothing(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	cfg := breaker.Config{Name: "billing", Window: breaker.Count(1), OpenFor: time.Hour}
	b, err := New(client, cfg, Options{OnOutage: leaf.FailClosed})
	require.NoError(t, err)
	t.Cleanup(func() { closeIt(t, b) })
	redistest.Eventually(t, "it answers", func() bool { return b.ForceOpen(bg) == nil })
	cluster.AwaitMaster(t, b.store.Key()).Do(t, "wait", 1, 5000) // the replica has it
	other, err := New(client, cfg, Options{OnOutage: leaf.FailClosed})
	require.NoError(t, err)
	t.Cleanup(func() { closeIt(t, other) })
	recovery := cluster.FailOver(t, b.store.Key(), func() error {
		if _, err := b.Acquire(bg); err == nil {
			t.Error("an open circuit admitted")
		}
		return other.ForceOpen(bg) // what asks the store, and changes nothing
	})
	t.Logf("recovered %v after the promotion", recovery)
	require.Less(t, recovery, time.Second)
	after, err := New(client, cfg, Options{Timeout: 5 * time.Second, OnOutage: leaf.FailClosed})
	require.NoError(t, err)
	t.Cleanup(func() { closeIt(t, after) })
	require.Equal(t, breaker.Open, after.State())
	require.NoError(t, after.Auto(bg))
	redistest.Eventually(t, "all hear of it", func() bool { return b.State() == breaker.Closed })
}
