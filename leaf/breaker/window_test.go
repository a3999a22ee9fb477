package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// off has no rule that anything here could meet, so that a window can be watched.
func off(w Window) Config {
	return Config{Window: w, FailureRate: Off, Consecutive: Off, SlowCall: math.MaxInt64}
}

func TestATimeWindowSlidesByBuckets(t *testing.T) {
	r := newRig(t, off(Time(10*time.Second)))
	for i := range 10 {
		r.to(100.5 + float64(i))
		r.run(1, failure)
	}
	r.counts(10, 10)
	for i := range 10 {
		r.to(110.4 + float64(i))
		r.counts(10-i, 10-i)
		r.to(110.5 + float64(i))
		r.counts(9-i, 9-i)
	}
}

func TestATimeWindowIsEmptyAfterAnyIdleLongerThanIt(t *testing.T) {
	for _, d := range []time.Duration{10, 19, 105, time.Second, 7 * time.Second / 3, time.Hour} {
		for _, idle := range []time.Duration{d, d + 1, 2 * d, 1000 * d, 26 * 365 * 24 * time.Hour} {
			r := newRig(t, off(Time(d)))
			r.run(3, failure)
			r.clock.step(d - d/10)
			r.run(4, success) // the newest bucket counts too
			r.clock.step(idle)
			r.counts(0, 0)
			r.run(1, failure)
			r.counts(1, 1)
		}
	}
}

func TestAResultOutlivesNineTenthsOfATimeWindow(t *testing.T) {
	r := newRig(t, off(Time(10*time.Second)))
	r.run(1, success)
	r.to(0.999)
	r.run(1, failure) // the end of the bucket
	r.to(9.999)
	r.counts(2, 1)
	r.to(10)
	r.counts(0, 0)
}

func TestACountWindowIsTheLastCalls(t *testing.T) {
	r := newRig(t, off(Count(5)))
	r.run(3, failure)
	r.to(1e6) // age does not matter
	r.run(2, success)
	r.counts(5, 3)
	for i := range 3 {
		r.run(1, success)
		r.counts(5, 2-i)
	}
	r.run(100, success)
	r.run(1, failure)
	r.counts(5, 1)
	r.run(4, success)
	r.counts(5, 1)
	r.run(1, success)
	r.counts(5, 0)
}

func TestWithinForgetsWhatIsOlder(t *testing.T) {
	r := newRig(t, off(Count(3).Within(10*time.Second)))
	r.run(1, failure)
	r.to(4)
	r.run(1, failure)
	r.to(10)
	r.counts(2, 2) // 10 s old is not older than 10 s
	r.clock.step(1)
	r.counts(1, 1)
	r.to(11)
	r.run(3, success)
	r.counts(3, 0)
	r.to(22)
	r.counts(0, 0)
	r.run(1, failure)
	r.counts(1, 1)
}

func TestRareFailuresThatHaveLeftTheWindowAreNoRow(t *testing.T) {
	r := newRig(t, Config{Window: Time(10 * time.Second), Consecutive: 5})
	for i := range 20 {
		r.to(11 * float64(i))
		r.run(1, failure)
	}
	r.is(Closed)

	r = newRig(t, Config{Window: Count(100), MinCalls: 50, Consecutive: 5})
	for i := range 4 {
		r.to(3600 * float64(i))
		r.run(1, failure)
		r.is(Closed)
	}
	r.to(3600 * 4)
	r.run(1, failure)
	r.is(Open) // a count window never forgets by time
}

func TestARowIsEndedByWhatIsNoFailureButNotByTheNeutral(t *testing.T) {
	r := newRig(t, Config{Consecutive: 3, MinCalls: 100})
	r.run(2, failure)
	r.run(5, canceled)
	r.run(1, success)
	r.run(2, failure)
	r.run(5, notRun)
	r.is(Closed)
	r.run(1, failure)
	r.is(Open)
	require.Equal(t, "3 failures in a row", r.Snapshot().Reason)
}

// After any recorded result: a success that completes MinCalls, and one that comes when old successes have left.
func TestASuccessCanTrip(t *testing.T) {
	r := newRig(t, Config{MinCalls: 20, FailureRate: 0.5, Consecutive: Off})
	r.run(15, failure)
	r.run(4, success)
	r.is(Closed)
	r.run(1, success)
	r.is(Open)
	require.Equal(t, "failure rate 15/20", r.Snapshot().Reason)
	require.NoError(t, r.refused().Cause)

	r = newRig(t, Config{MinCalls: 20, FailureRate: 0.5})
	r.run(100, success)
	r.to(5)
	r.run(40, failure)
	r.run(5, success)
	r.is(Closed)
	r.to(10)
	r.is(Closed)
	r.run(1, success)
	r.is(Open)
	require.Equal(t, "failure rate 40/46", r.Snapshot().Reason)
}

func TestTwentyNineOfAHundredReach29Percent(t *testing.T) {
	for _, w := range []Window{Count(100), Time(time.Minute), Count(100).Within(time.Minute)} {
		r := newRig(t, Config{Window: w, MinCalls: 100, FailureRate: 0.29, Consecutive: Off})
		r.run(71, success)
		r.run(28, failure)
		r.is(Closed)
		r.run(1, failure)
		r.is(Open)
		require.Equal(t, "failure rate 29/100", r.Snapshot().Reason)
	}
}

func TestFailureCountTripsWhateverMinCalls(t *testing.T) {
	r := newRig(t, Config{FailureRate: Off, Consecutive: Off, FailureCount: 3, MinCalls: 1000})
	for range 2 {
		r.run(5, success)
		r.run(1, failure)
	}
	r.is(Closed)
	r.run(1, failure)
	r.is(Open)
	require.Equal(t, "3 failures in the window", r.Snapshot().Reason)
}

func TestSlowCallsTrip(t *testing.T) {
	r := newRig(t, Config{SlowCall: time.Second, SlowRate: 0.3, MinCalls: 10})
	slow, late := success, canceled
	slow.Took, late.Took = time.Second, time.Second
	r.run(7, success)
	r.run(2, slow)
	r.is(Closed)
	r.run(1, late)
	r.is(Open)
	require.Equal(t, "slow rate 3/10", r.Snapshot().Reason)
	require.NoError(t, r.refused().Cause, "that a caller left is no failure that tripped it")

	r = newRig(t, Config{SlowCall: time.Second, SlowRate: 0.3, MinCalls: 10})
	r.run(3, slow)
	r.run(6, success)
	r.is(Closed)
	r.run(1, success) // completes MinCalls, in a window without failures
	r.is(Open)
}

// Successes that were counted without the lock end a row as well.
func TestASuccessThatNeededNoJudgingEndsTheRow(t *testing.T) {
	r := newRig(t, Config{MinCalls: 10, FailureRate: 1, Consecutive: 4})
	r.run(8, success)
	r.to(5)
	r.run(2, failure)
	r.run(1, success)
	r.to(10) // the first eight have left
	r.run(3, failure)
	r.is(Closed)
	r.run(1, failure)
	r.is(Open)
	require.Equal(t, "4 failures in a row", r.Snapshot().Reason)
}

func TestSizeIsWhatTheWindowCounts(t *testing.T) {
	for w, want := range map[Window][2]time.Duration{
		{}:                             {0, 10 * time.Second},
		Time(time.Minute):              {0, time.Minute},
		Count(100):                     {100, 0},
		Count(7).Within(3 * time.Hour): {7, 3 * time.Hour},
	} {
		calls, within := w.Size()
		require.Equal(t, want, [2]time.Duration{time.Duration(calls), within}, w.String())
	}
}
