package redisbulkhead

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/stretchr/testify/require"
)

func total(done []int64) (sum int64) {
	for _, n := range done {
		sum += n
	}
	return sum
}

// Section 13's test 3.
func TestTwoProcessesWith200CallsEachAreNeverAboveTheLimit(t *testing.T) {
	o, _ := race(t, redistest.Shared(t), 8, calm, func(done []int64) bool { return total(done) >= 10000 }, 200, 200)
	require.LessOrEqual(t, o.most.Load(), int64(8))
	require.Greater(t, o.most.Load(), int64(1))
}

// Section 13's test 12.
func TestSharesOfEqualProcessesAreWithin60To40(t *testing.T) {
	for _, limit := range []int{1, 8} {
		_, done := race(t, redistest.Shared(t), limit, calm, func(done []int64) bool { return total(done) >= 10000 }, 200, 200)
		share := float64(done[0]) / float64(total(done))
		t.Logf("limit %d: %v", limit, done)
		require.InDelta(t, 0.5, share, 0.1, "limit %d: %v", limit, done)
	}
}

// Section 13's test 12.
func TestTwoCallsAreNotStarvedBy200(t *testing.T) {
	for _, limit := range []int{1, 2, 8} {
		_, done := race(t, redistest.Shared(t), limit, calm, func(done []int64) bool { return done[0] >= 200 && done[1] >= 200 }, 2, 200)
		t.Logf("limit %d: %v", limit, done)
		require.Greater(t, done[0]*20, done[1], "limit %d: %v", limit, done)
	}
}

// Section 13's test 4.
func TestNeverAboveTheLimitUnderScriptFlushAndClientKill(t *testing.T) {
	s := redistest.Start(t)
	began := time.Now()
	o, _ := race(t, s, 4, calm, func(done []int64) bool {
		s.Do(t, "script", "flush")
		s.Do(t, "client", "kill", "type", "normal")
		s.Do(t, "client", "kill", "type", "pubsub")
		return time.Since(began) > 2*time.Second && total(done) >= 500
	}, 50, 50)
	require.LessOrEqual(t, o.most.Load(), int64(4))
}

// Section 13's test 8.
func TestSlotsOfAKilledHolderAreBackWithinTheLeaseAndAPoll(t *testing.T) {
	s := redistest.Shared(t)
	_, path := newOracle(t)
	const lease = time.Second
	prefix := s.Prefix(t)
	holder := redistest.Spawn(t, "worker", workload{addr: s.Addr, prefix: prefix, oracle: path, goroutines: 4, max: 4,
		timeout: lease / 2, lease: lease, hold: true}.args()...)
	holder.Expect(t, "ready")
	b := fleet(t, 1, waiting(4), Options{Prefix: prefix, LeaseTTL: lease, Timeout: lease / 2})[0]
	require.Equal(t, 4, inUse(t, b))
	isFull(t, b)

	// While it lives, its lease is renewed, however long it holds.
	began := time.Now()
	redistest.Eventually(t, "two leases are over", func() bool { return time.Since(began) > 2*lease })
	require.Equal(t, 4, inUse(t, b))
	isFull(t, b)

	holder.Kill()
	killed := time.Now()
	for range 4 {
		defer back(t, take(t, b))
	}
	require.Less(t, time.Since(killed), lease+patience+2*lastPoll)
}
