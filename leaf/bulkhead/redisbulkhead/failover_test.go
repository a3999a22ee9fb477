package redisbulkhead

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// Section 13, test 19, under the bulkhead: the slots that are held survive the master that granted them.
func TestAKilledMasterOfTheClusterFreesNoSlot(t *testing.T) {
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	a := open(t, client, once(2), Options{OnOutage: leaf.FailClosed})
	b := open(t, client, once(2), Options{OnOutage: leaf.FailClosed})
	var held []*leaf.Permit
	redistest.Eventually(t, "it answers", func() bool {
		p, err := a.Acquire(bg)
		if err == nil {
			held = append(held, &p)
		}
		return len(held) == 2
	})
	cluster.AwaitMaster(t, a.store.Key()).Do(t, "wait", 1, 5000) // the replica has it
	recovery := cluster.FailOver(t, a.store.Key(), func() error {
		if p, err := b.Acquire(bg); err == nil {
			t.Error("a third call is inside")
			_ = p.Settle(bg, leaf.Outcome{})
		}
		_, err := b.InUse(bg)
		return err
	})
	t.Logf("recovered %v after the promotion", recovery)
	require.Less(t, recovery, time.Second)
	require.Equal(t, 2, inUse(t, b))
	isFull(t, b)
	for _, p := range held {
		back(t, p)
	}
	back(t, take(t, b))
}

// Guards of one name are one bulkhead, whatever each was made with: the one that asks brings its own limit, and the lease of what
// it takes.
func TestTwoGuardsOfOneNameWithDifferentConfigs(t *testing.T) {
	v := newVirtual()
	client, prefix := redistest.Shared(t).Client(t), redistest.Shared(t).Prefix(t)
	small := open(t, client, once(1), Options{Prefix: prefix, Now: v.Now, LeaseTTL: time.Minute})
	large := open(t, client, once(3), Options{Prefix: prefix, Now: v.Now, LeaseTTL: time.Hour})
	one := take(t, large)
	isFull(t, small) // 1 of its 1 is taken
	two := take(t, large)
	require.Equal(t, 2, inUse(t, small))
	isFull(t, small)
	back(t, one)
	isFull(t, small)
	back(t, two)
	mine := take(t, small)
	rest := []*leaf.Permit{take(t, large), take(t, large)}
	isFull(t, large)
	back(t, mine)
	back(t, take(t, large))
	for _, p := range rest {
		back(t, p)
	}
	require.Zero(t, inUse(t, small))
}
