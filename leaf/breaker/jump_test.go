package breaker

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

const decades = 26 * 365 * 24 * time.Hour

func TestAClockThatJumpsBackEndsTheOpenTime(t *testing.T) {
	for _, back := range []time.Duration{1, time.Second, decades} {
		r := newRig(t, hair())
		r.to(100)
		r.run(1, failure)
		r.clock.step(-back)
		require.NoError(t, r.Peek(bg))
		r.is(HalfOpen)
		require.Zero(t, r.Snapshot().Wait)
		r.run(1, success)
		r.is(Closed)
		require.Equal(t, "clock went back", r.told[1].Reason)
	}
}

func TestAClockThatJumpsAheadEndsTheOpenTime(t *testing.T) {
	r := newRig(t, Config{MinCalls: 1, OpenFor: math.MaxInt64})
	r.clock.at.Store(math.MinInt64 / 2)
	r.run(1, failure)
	r.clock.at.Store(math.MinInt64/2 + 1)
	require.Equal(t, time.Duration(math.MaxInt64-1), r.refused().Wait)
	r.clock.at.Store(math.MaxInt64) // further than an int64 can tell the difference
	r.is(HalfOpen)
}

// Instants so far apart that their difference wraps around to a small number.
func TestTheWidestJumpBackIsOne(t *testing.T) {
	require.Zero(t, remains(math.MaxInt64, time.Hour, math.MinInt64))
	for _, w := range []Window{Time(time.Hour), Count(5).Within(time.Hour)} {
		h := newHistory(w)
		h.record(math.MaxInt64, failed)
		require.Zero(t, h.at(math.MinInt64, 0))
		h.record(math.MinInt64, failed)
		require.Equal(t, totals{1, 1, 0}, h.held())
	}
}

func TestAClockThatJumpsFreesTheProbesSlot(t *testing.T) {
	for _, jump := range []time.Duration{-1, -decades, decades} {
		r := halfOpen(t, func(c *Config) { c.ProbeSuccesses = 2 })
		late := r.begin()
		r.clock.step(jump)
		require.Zero(t, r.Snapshot().Probes)
		require.NoError(t, r.Peek(bg))
		r.run(1, success)
		late(success) // the episode is the same
		r.is(Closed)
	}
}

func TestAClockThatJumpsEmptiesATimedWindow(t *testing.T) {
	for _, w := range []Window{Time(10 * time.Second), Count(100).Within(10 * time.Second)} {
		for _, jump := range []time.Duration{-decades, -11 * time.Second, decades} {
			r := newRig(t, Config{Window: w, MinCalls: 50, Consecutive: 5})
			r.to(1000)
			r.run(3, success)
			r.run(4, failure)
			r.clock.step(jump)
			r.counts(0, 0)
			r.run(1, failure) // no row of five either
			r.is(Closed)
			r.counts(1, 1)
			r.run(3, success)
			r.counts(4, 1)
			r.clock.step(-jump)
			r.counts(0, 0)
		}
	}
}

func TestACountWindowDoesNotMindAJump(t *testing.T) {
	r := newRig(t, off(Count(10)))
	r.run(4, failure)
	r.clock.step(-decades)
	r.run(1, failure)
	r.counts(5, 5)
}

// A package-level breaker on real time is used from a test's bubble, where it is the year 2000, and afterwards outside.
func TestABubbleIsAJump(t *testing.T) {
	b := MustNew(Config{MinCalls: 1, OpenFor: time.Hour})
	counting := MustNew(off(Time(time.Hour)))
	fail := func(b *Breaker) {
		p, err := b.Acquire(bg)
		require.NoError(t, err)
		require.NoError(t, p.Settle(bg, failure))
	}
	fail(b)
	fail(counting)
	require.ErrorIs(t, b.Peek(bg), ErrOpen)
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, HalfOpen, b.State())
		require.Zero(t, counting.Snapshot().Calls)
		fail(counting)
		fail(b)
		var e *OpenError
		require.ErrorAs(t, b.Peek(bg), &e)
		require.Equal(t, time.Hour, e.Wait)
		<-time.After(time.Hour)
		require.Equal(t, HalfOpen, b.State())
		fail(b)
	})
	require.Equal(t, HalfOpen, b.State())
	p, err := b.Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, p.Settle(bg, leaf.Outcome{}))
	require.Equal(t, Closed, b.State())
	require.Zero(t, counting.Snapshot().Calls)
}
