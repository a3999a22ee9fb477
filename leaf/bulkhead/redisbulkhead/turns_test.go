package redisbulkhead

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/stretchr/testify/require"
)

// Queueing costs the store nothing: who stands behind one that waits knows the answer.
func TestWhoComesBehindOneThatWaitsCostsNoStoreCall(t *testing.T) {
	b := open(t, redistest.Shared(t).Client(t), waiting(2), Options{Timeout: calm})
	one, two := take(t, b), take(t, b)
	first := goAcquire(t, bg, b)
	registered(t, b, 1)

	c, asks, err := b.join(true)
	require.NoError(t, err)
	require.True(t, asks, "the store should know that a second slot is wanted")
	registered(t, b, 2)

	d, asks, err := b.join(true)
	require.NoError(t, err)
	require.False(t, asks)
	require.True(t, d.waits)
	b.leave(d)

	b.mu.Lock()
	b.outage.down = true // the policy decides on everybody who comes
	b.mu.Unlock()
	d, asks, err = b.join(true)
	require.NoError(t, err)
	require.True(t, asks)
	b.leave(d)
	b.leave(c)
	back(t, one)
	back(t, (<-first).permit)
	back(t, two)
}

// registered waits until the store knows how many slots b wants.
func registered(t *testing.T, b *Bulkhead, wants int) {
	t.Helper()
	redistest.Eventually(t, "it stands in the line", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.engine.registered && b.engine.wants == wants && b.waiting == wants
	})
}

func TestSlotsThatAreSpentTogetherComeBackInOneTurn(t *testing.T) {
	now := time.Now()
	ms := time.Millisecond
	for _, row := range []struct {
		name          string
		lively        int
		granted, took time.Duration
		at            time.Duration // 0 = at once
	}{
		{"the last one has nobody to wait for", 0, 0, ms / 2, 0},
		{"the others came just now", 3, 0, ms / 2, ms / 2},
		{"they have had half of the time", 3, -ms / 4, ms / 2, ms / 4},
		{"a turn could have come back: they hold on to their slots", 3, -ms / 2, ms / 2, 0},
		{"a slow store's turns are not waited for", 3, 0, 40 * ms, ms},
		{"nothing came yet", 3, -time.Hour, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := open(t, redistest.Shared(t).Client(t), waiting(8), Options{Timeout: calm})
			b.mu.Lock()
			b.lively = row.lively
			b.engine.granted, b.engine.took = now.Add(row.granted), row.took
			b.engine.running = true // so that it is not begun
			b.engine.wake = make(chan struct{}, 1)
			b.soon(now)
			spent, at := b.engine.spent, b.engine.at
			b.engine.running, b.lively = false, 0
			b.mu.Unlock()
			require.Equal(t, row.at == 0, spent)
			if row.at > 0 {
				require.Equal(t, now.Add(row.at), at)
			}
		})
	}
}

// A process that was in one quarantine last reports in the next one, too, at once and not at its next renewal.
func TestASecondLossIsASecondQuarantine(t *testing.T) {
	v := newVirtual()
	s := redistest.Shared(t)
	two := fleet(t, 2, once(3), Options{Now: v.Now, LeaseTTL: time.Hour})
	p := take(t, two[0])
	back(t, take(t, two[1]))
	for i := range 2 {
		s.Do(t, "del", two[0].store.Key())
		isFull(t, two[1]) // it begins
		isFull(t, two[0])
		redistest.Eventually(t, "the holder has reported", func() bool { return inUse(t, two[1]) == 1 })
		v.advance(20*time.Minute + time.Duration(i+1)*time.Second)
		back(t, take(t, two[1]))
	}
	back(t, p)
}
