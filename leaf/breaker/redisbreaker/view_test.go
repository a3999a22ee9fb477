package redisbreaker

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/stretchr/testify/require"
)

// A reply of another shape is an error, never a state.
func TestOddRepliesAreErrors(t *testing.T) {
	f := newFleet(t, breaker.Config{})
	m := f.join()
	for _, body := range []string{"return 1", "return {}", "return {" + strings.Repeat("'x',", 17) + "}"} {
		reply, err := m.store.Do(bg, storeCall(leaf.OpAdmit, redisscript.NewScript(body), nil))
		require.NoError(t, err)
		_, err = parse(reply)
		require.ErrorIs(t, err, errReply)

		var failed *leaf.StoreError
		_, err = m.ask(bg, storeCall(leaf.OpRecord, redisscript.NewScript(body), nil), nil)
		require.ErrorAs(t, err, &failed)
		require.Equal(t, leaf.OpRecord, failed.Op)
	}
	m.is(breaker.Closed)
}

// An opening's end is counted from the instant at which the call was sent, and a clock that goes back voids it.
func TestOpeningOnThisProcesssClock(t *testing.T) {
	a := answer{left: 3 * time.Second, view: view{gen: 7, state: breaker.Open, lasts: 10e6, known: true}}
	v := (&view{serial: 1}).next(&a, int64(time.Hour), errDown)
	require.EqualValues(t, 2, v.serial)
	require.Equal(t, 3*time.Second, v.left(int64(time.Hour)))
	require.Equal(t, time.Nanosecond, v.left(int64(time.Hour+3*time.Second-1)))
	require.Zero(t, v.left(int64(time.Hour+3*time.Second)))
	require.Zero(t, v.left(int64(time.Hour-8*time.Second)))
	require.Zero(t, v.left(math.MinInt64))

	again := answer{left: 5 * time.Second, view: view{gen: 7, state: breaker.Open, lasts: 10e6, known: true}}
	require.Equal(t, v.since, v.next(&again, int64(2*time.Hour), nil).since, "the same opening does not move")
}

func TestBrokenRandDoesNotBreakTheOpenTime(t *testing.T) {
	for _, row := range []struct {
		rand func() float64
		want int64
	}{
		{func() float64 { return math.NaN() }, 5e6}, {func() float64 { return -1 }, 5e6}, {func() float64 { panic("Rand") }, 5e6},
		{func() float64 { return 7 }, 10e6 - 1}, {func() float64 { return 0.5 }, 75e5},
	} {
		p := newPolicy(breaker.MustNew(breaker.Config{OpenFor: 10 * time.Second, OpenJitter: true, Rand: row.rand}).Config(), 1)
		open, wait := p.firstOpening()
		require.Equal(t, [2]int64{10e6, row.want}, [2]int64{open, wait})
	}
	p := newPolicy(breaker.MustNew(breaker.Config{OpenFor: 10 * time.Second, OpenJitter: true}).Config(), 1)
	for range 1000 {
		_, wait := p.firstOpening()
		require.GreaterOrEqual(t, wait, int64(5e6))
		require.Less(t, wait, int64(10e6))
	}
}

func TestMicroseconds(t *testing.T) {
	require.EqualValues(t, 1, microsUp(1))
	require.EqualValues(t, 1, microsUp(time.Microsecond))
	require.EqualValues(t, 2, microsUp(time.Microsecond+1))
	require.EqualValues(t, 1<<52, micros(math.MaxInt64))
}

// A permit that is not known (settled before, or another breaker's) settles nothing.
func TestUnknownTokensSettleNothing(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1)})
	m := f.join()
	require.NoError(t, m.Settle(bg, 99<<1|entryToken, failure))
	require.NoError(t, m.Settle(bg, 99<<1|closedToken, failure))
	m.sync()
	m.is(breaker.Closed)
}

func TestASnapshotTellsSinceWhenAndWhyItOpenedLast(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	a := f.join()
	require.Equal(t, breaker.Snapshot{Name: "billing"}, a.Snapshot(), "nothing yet")
	a.run(1, failure)
	s := a.Snapshot()
	require.Equal(t, []any{"failure rate 1/1", "failure rate 1/1"}, []any{s.Reason, s.Trip})
	require.Positive(t, s.Since)
	require.Equal(t, s.Since, s.TripAgo)
	f.to(4)
	b := f.join() // reads it
	require.GreaterOrEqual(t, b.Snapshot().TripAgo, 4*time.Second, "since it opened, not since it was heard of")
	f.to(10)
	a.begin()(success)
	s = a.Snapshot()
	require.Equal(t, []any{breaker.Closed, "1 probe succeeded", "failure rate 1/1"}, []any{s.State, s.Reason, s.Trip})
	require.Positive(t, s.Since)
	require.Greater(t, s.TripAgo, s.Since)
	c := f.join().Snapshot()
	require.Equal(t, []any{"1 probe succeeded", "", time.Duration(0), time.Duration(0)}, []any{c.Reason, c.Trip, c.Since, c.TripAgo})
}
