package breaker

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// withoutLock runs f while somebody else holds the breaker's lock; it returns how often f has read the clock.
func withoutLock(r *rig, f func()) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, done := r.clock.reads.Load(), make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done // for ever, if f waits for the lock
	return r.clock.reads.Load() - before
}

func TestAClosedCircuitAdmitsWithoutLockAndClock(t *testing.T) {
	r := newRig(t, Config{})
	r.run(3, failure)
	require.Zero(t, withoutLock(r, func() {
		_, _ = r.Acquire(bg)
		_, _ = r.TryAcquire(bg)
		_ = r.Peek(bg)
		_ = r.State()
	}))
}

func TestAnOpenCircuitRefusesWithoutLock(t *testing.T) {
	r := newRig(t, hair())
	r.run(1, failure)
	require.EqualValues(t, 1, withoutLock(r, func() { _, _ = r.Acquire(bg) }))
	require.EqualValues(t, 1, withoutLock(r, func() { _ = r.Peek(bg) }))
	_ = r.ForceOpen(bg)
	require.Zero(t, withoutLock(r, func() { _, _ = r.Acquire(bg) }))
}

func TestASuccessInACleanCountWindowWritesNothing(t *testing.T) {
	r := newRig(t, Config{Window: Count(10)})
	r.run(10, success)
	word := r.tally.word.Load()
	require.Zero(t, withoutLock(r, func() { call(r.Breaker, success) }))
	require.Equal(t, word, r.tally.word.Load())
	r.run(1, failure)
	r.counts(10, 1)
	r.run(9, success)
	r.counts(10, 1)
	r.run(1, success)
	r.counts(10, 0)
}

func TestASuccessInATimeWindowReadsTheClockOnceAndTakesNoLock(t *testing.T) {
	r := newRig(t, Config{MinCalls: 5})
	r.run(1, success)
	require.EqualValues(t, 1, withoutLock(r, func() { call(r.Breaker, success) }), "a clean window")
	r.run(1, failure)
	r.run(2, success)
	require.EqualValues(t, 1, withoutLock(r, func() { call(r.Breaker, success) }), "enough calls, below the threshold")
	r.counts(6, 1)
	r.run(1, failure)
	r.counts(7, 2)
}

func TestAnEarlierGenerationsResultCostsNothingAndAsksNobody(t *testing.T) {
	asked := 0
	r := newRig(t, Config{MinCalls: 1, IsFailure: func(err error) bool { asked++; return err != nil }})
	late := r.begin()
	r.run(1, failure)
	require.Equal(t, 1, asked)
	require.Zero(t, withoutLock(r, func() { late(failure) }))
	require.Equal(t, 1, asked)
}

// The generation may end between Settle's first look and its count.
func TestALateResultCountsInNoOpeningOfALaterGeneration(t *testing.T) {
	for _, w := range []Window{Time(time.Hour), Count(1)} {
		r := newRig(t, off(w))
		old := r.word.Load()
		_ = r.Reset(bg)
		r.run(1, success)
		require.NotEqual(t, shutMode, r.tally.word.Load()&modeMask)
		r.record(old, succeeded, nil)
		r.record(old, failed, errDown)
		r.counts(1, 0)
	}
}

func TestTheTallyFailsOutsideItsOpening(t *testing.T) {
	var y tally
	y.openFor(100, 10)
	w := y.word.Load()
	require.True(t, y.count(w, 100))
	require.True(t, y.count(w, 109), "a word that others have counted in meanwhile is still the opening")
	require.False(t, y.count(w, 99))
	require.False(t, y.count(w, 110))
	require.Equal(t, 2, y.counted())
	require.Equal(t, 2, y.shut())
	require.Zero(t, y.shut())
	require.False(t, y.count(w, 105), "shut")
	y.openFor(100, 10)
	require.False(t, y.count(w, 105), "another opening, though it looks the same")
	require.Zero(t, y.counted())

	y.word.Store(y.word.Load() | countMask)
	require.False(t, y.count(y.word.Load(), 105), "full: the lock empties it")
	require.Equal(t, 1<<countBits-1, y.shut())
	y.open(absorbMode)
	require.Zero(t, y.shut())
}

// A full tally is emptied by the success that finds it full.
func TestAFullTallyLosesNothing(t *testing.T) {
	r := newRig(t, Config{})
	r.run(1, success)
	r.tally.word.Store(r.tally.word.Load() | countMask)
	r.run(2, success)
	r.counts(1<<countBits+2, 0)
}

func TestTheSuccessPathAllocatesNothing(t *testing.T) {
	for _, c := range benches {
		b := MustNew(c.cfg)
		if c.ready != nil {
			c.ready(b)
		}
		limit := 0.0
		if b.State() != Closed {
			limit = 1 // a refusal is one error
		}
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { call(b, c.o) }), limit, c.name)
	}
	r := newRig(t, Config{})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		r.clock.step(time.Second) // another bucket each time
		call(r.Breaker, leaf.Outcome{})
	}))
}
