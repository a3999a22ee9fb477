package budget

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRingSlotsRoundDownOnBothSidesOfTheOrigin(t *testing.T) {
	r := newRing(100, 10*time.Second)
	for now, want := range map[int64]int64{
		100: 0, 99: -1, 101: 0, 100 + 1e9 - 1: 0, 100 + 1e9: 1, 100 - 1e9: -1, 100 - 1e9 - 1: -2, 100 - 25e9: -25,
	} {
		require.Equal(t, want, r.slot(now), now)
	}
}

func TestRingCountsBeforeItsOriginToo(t *testing.T) {
	r := newRing(0, 10*time.Second)
	for s := int64(-15); s < 15; s++ {
		r.add(s)
		require.EqualValues(t, min(s+16, slots), r.sum(s))
	}
}

func TestRingAnAddThatWasHeldUpWipesNothing(t *testing.T) {
	r := newRing(0, time.Second)
	r.add(13)
	r.add(13)
	r.add(3) // read the clock a TTL ago
	require.EqualValues(t, 3, r.sum(13))
}

func TestRingAheadIsForgottenAndTakenOver(t *testing.T) {
	r := newRing(0, time.Second)
	r.add(1_000_003)
	require.Zero(t, r.sum(3), "it lies ahead")
	r.add(3)
	require.EqualValues(t, 1, r.sum(3))
	r.put(13)
	r.put(3) // alone: what is there is no concurrent add, but a clock that jumped back
	require.EqualValues(t, 1, r.sum(3))
}

func TestRingRemoveFindsItsOwnSlotAlone(t *testing.T) {
	r := newRing(0, time.Second)
	r.add(3)
	r.remove(13) // the same word, another slot
	r.remove(4)
	require.EqualValues(t, 1, r.sum(3))
	r.remove(3)
	r.remove(3)
	require.Zero(t, r.sum(3), "never below zero")
}

func TestRingCountsSaturate(t *testing.T) {
	require.Equal(t, uint32(math.MaxUint32), add32(math.MaxUint32-1, 2))
	require.Equal(t, uint32(math.MaxUint32), add32(1, math.MaxUint32-1))
}
