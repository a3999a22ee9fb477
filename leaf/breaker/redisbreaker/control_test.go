package redisbreaker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/stretchr/testify/require"
)

// ForceOpen never probes and survives OpenFor, in the whole fleet; Auto starts closed and empty.
func TestForceOpenHoldsForTheFleet(t *testing.T) {
	f := newFleet(t, breaker.Config{OpenFor: 10 * time.Second, FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
	a, b := f.join(), f.join()
	b.run(3, failure)
	late := b.begin()
	require.NoError(t, a.ForceOpen(bg))
	require.NoError(t, a.ForceOpen(bg))
	b.is(breaker.Closed) // it does not know yet
	b.run(1, success)    // its next flush
	b.is(breaker.Open)
	f.to(1e6)
	for _, m := range []*member{a, b, f.join()} {
		require.Zero(t, m.refused().Wait)
		require.True(t, m.Snapshot().Forced)
		require.Equal(t, "forced", m.Snapshot().Reason)
	}
	require.NoError(t, b.Auto(bg))
	late(failure)
	b.run(1, success)
	b.counts(1, 0)
	a.poll()
	a.is(breaker.Closed)
	require.False(t, a.Snapshot().Forced)
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open, breaker.Closed}, a.route())
}

func TestForceOpenOfAnOpenCircuit(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	a, b := f.join(), f.join()
	a.run(1, failure)
	b.poll()
	require.NoError(t, a.ForceOpen(bg))
	b.poll()
	f.to(100)
	require.Zero(t, a.refused().Wait)
	require.Zero(t, b.refused().Wait)
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open}, b.route())
}

// ForceClosed keeps counting, and a circuit that is closed keeps its counts.
func TestForceClosedAdmitsAndCounts(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(10), MinCalls: 4, Consecutive: breaker.Off})
	a, b := f.join(), f.join()
	a.run(3, failure)
	late := a.begin()
	require.NoError(t, b.ForceClosed(bg))
	late(failure)
	a.run(1, failure)
	a.is(breaker.Closed)
	a.counts(5, 5)
	require.True(t, a.Snapshot().Forced)
	require.NoError(t, a.Auto(bg))
	b.run(1, failure)
	b.counts(0, 0) // it was one of before Auto
	b.run(3, failure)
	b.is(breaker.Closed)
	b.run(1, failure)
	b.is(breaker.Open)
	require.NoError(t, a.ForceClosed(bg))
	b.poll()
	b.is(breaker.Closed)
}

func TestAutoWithoutAForceDoesNothing(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	m := f.join()
	m.run(1, failure)
	require.NoError(t, m.Auto(bg))
	m.is(breaker.Open)
	require.NoError(t, m.Reset(bg))
	m.is(breaker.Closed)
	require.Equal(t, breaker.Closed, m.local.State())
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open, breaker.Closed}, m.route())
	require.Equal(t, "reset", m.changes()[1].Reason)
}

// The second sending of a control must not undo another's.
func TestControlsCountOnce(t *testing.T) {
	f := newFleet(t, breaker.Config{})
	m := f.join()
	send := func(what, token string) {
		_, err := m.store.Do(bg, storeCall(leaf.OpRecord, control, m.args(what, token)))
		require.NoError(t, err)
	}
	send("force_open", "first")
	send("auto", "second")
	require.Equal(t, "0", f.field("f"))
	send("force_open", "third")
	send("auto", "second")
	require.Equal(t, "1", f.field("f"))
	for i := range 100 {
		send("reset", fmt.Sprintf("reset %d", i))
	}
	require.LessOrEqual(t, len(f.field("z")), 256)
	require.Equal(t, "0", f.field("f"))
}

func TestControlErrors(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{})
	m := f.join()
	cause := errors.New("went away")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	for _, control := range []func(context.Context) error{m.ForceOpen, m.ForceClosed, m.Auto, m.Reset} {
		require.ErrorIs(t, control(ctx), cause)
	}
	n, err := f.client.Exists(bg, f.key()).Result()
	require.NoError(t, err)
	require.Zero(t, n)
	s.Kill(t)
	for _, control := range []func(context.Context) error{m.ForceOpen, m.ForceClosed, m.Auto, m.Reset} {
		var failed *leaf.StoreError
		require.ErrorAs(t, control(bg), &failed)
		require.False(t, failed.Rejected())
	}
	m.is(breaker.Closed)
}

// Key TTL = max(IdleTTL, open time left), set with each write and refreshed while the circuit is open.
func TestKeyLivesAsLongAsItSays(t *testing.T) {
	ttl := func(f *fleet) time.Duration {
		v, err := f.client.PTTL(bg, f.key()).Result()
		require.NoError(t, err)
		return v
	}
	about := func(want, got time.Duration) {
		t.Helper()
		require.LessOrEqual(t, got, want)
		require.Greater(t, got, want-30*time.Second)
	}
	for _, row := range []struct {
		idle, open, closed, opened time.Duration
	}{
		{0, 10 * time.Second, 720 * time.Hour, 720 * time.Hour},
		{time.Minute, 10 * time.Second, time.Minute, time.Minute},
		{time.Minute, time.Hour, time.Minute, time.Hour},
		{-1, time.Hour, -1, -1},
		{time.Minute, 1<<63 - 1, time.Minute, 36525 * 24 * time.Hour},
	} {
		f := newFleet(t, breaker.Config{Window: breaker.Count(2), MinCalls: 2, OpenFor: row.open}).real()
		f.opts.IdleTTL = row.idle
		m := f.join()
		check := func(want time.Duration) {
			t.Helper()
			if want < 0 {
				require.Equal(t, time.Duration(-1), ttl(f), "no end")
				return
			}
			about(want, ttl(f))
		}
		m.run(1, failure)
		check(row.closed)
		m.run(1, failure)
		check(row.opened)
		if row.idle > 0 {
			require.NoError(t, f.client.PExpire(bg, f.key(), time.Second).Err())
			m.poll()
			check(row.opened)
			require.NoError(t, f.client.PExpire(bg, f.key(), time.Second).Err())
			_, err := m.store.Do(bg, storeCall(leaf.OpAdmit, admit, m.args("x", 0, 1))) // a refusal
			require.NoError(t, err)
			check(row.opened)
		}
	}
	f := newFleet(t, breaker.Config{})
	f.opts.IdleTTL = time.Millisecond
	f.join().run(1, failure)
	about(time.Hour, ttl(f)) // virtual time
}
