package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ageless is s without how long ago things happened.
func ageless(s Snapshot) Snapshot {
	s.Since, s.Trip, s.TripAgo = 0, "", 0
	return s
}

// Which circuit is open, why, and since when: what a person asks first.
func TestSnapshotTellsSinceWhenAndWhyItOpenedLast(t *testing.T) {
	r := newRig(t, Config{MinCalls: 1, OpenFor: 10 * time.Second})
	is := func(state State, reason string, since time.Duration, trip string, ago time.Duration) {
		t.Helper()
		s := r.Snapshot()
		require.Equal(t, []any{state, reason, since, trip, ago}, []any{s.State, s.Reason, s.Since, s.Trip, s.TripAgo})
	}
	r.to(5)
	is(Closed, "", 0, "", 0)
	r.run(1, failure)
	r.to(7)
	is(Open, "failure rate 1/1", 2*time.Second, "failure rate 1/1", 2*time.Second)
	r.to(15)
	probe := r.begin()
	r.to(16)
	is(HalfOpen, "open time is over", time.Second, "failure rate 1/1", 11*time.Second)
	probe(failure)
	r.to(20)
	is(Open, "probe failed", 4*time.Second, "probe failed", 4*time.Second)
	r.to(30)
	r.run(1, success)
	r.to(31)
	is(Closed, "1 probe succeeded", time.Second, "probe failed", 15*time.Second)
	require.NoError(t, r.ForceClosed(bg))
	r.to(32)
	require.NoError(t, r.ForceClosed(bg))
	r.to(33)
	is(Closed, "forced", 2*time.Second, "probe failed", 17*time.Second)
	require.NoError(t, r.ForceOpen(bg))
	r.to(34)
	is(Open, "forced", time.Second, "probe failed", 18*time.Second)
	require.NoError(t, r.Auto(bg))
	r.to(35)
	is(Closed, "automatic again", time.Second, "probe failed", 19*time.Second)
}

func TestAgo(t *testing.T) {
	for _, c := range []struct {
		at, now int64
		want    time.Duration
	}{
		{5, 7, 2}, {5, 5, 1}, {7, 5, 1}, {math.MinInt64, math.MaxInt64, math.MaxInt64}, {-3, 4, 7},
	} {
		require.Equal(t, c.want, ago(c.at, c.now), "%v", c)
	}
}
