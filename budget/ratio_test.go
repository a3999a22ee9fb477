package budget

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRatioStartsFullWithTheFloorOfTheWholeTTL(t *testing.T) {
	r := MustNewRatio(RatioConfig{Clock: newClock()})
	require.Equal(t, 100, r.Balance(), "10 per second × 10 s, at once")
	require.Equal(t, 100, drain(r))
	require.Equal(t, 0, r.Balance())
	r, err := NewRatio(RatioConfig{MinPerSecond: 3, TTL: 1500 * time.Millisecond, Clock: newClock()})
	require.NoError(t, err)
	require.Equal(t, 4, drain(r), "4.5, rounded down")
}

// drain reserves and commits until there is no token left.
func drain(b Retry) (n int) {
	for {
		token, ok := b.Reserve()
		if !ok {
			return n
		}
		token.Commit()
		n++
	}
}

func TestRatioEarnsPerDepositExactly(t *testing.T) {
	for _, c := range []struct {
		ratio    float64
		deposits int
		want     int
	}{
		{0.2, 4, 0}, {0.2, 5, 1}, {0.2, 99, 19}, {0.2, 100, 20},
		{0.29, 100, 29}, // float64: 28.999999999999996
		{0.1, 30, 3}, {0.1, 29, 2},
		{1000, 3, 3000}, {1, 7, 7}, {2.5, 3, 7},
		{1e-9, 100, 0}, {1e-300, 1, 0},
	} {
		r := MustNewRatio(RatioConfig{Ratio: c.ratio, MinPerSecond: Off, Clock: newClock()})
		for range c.deposits {
			r.Deposit()
		}
		require.Equal(t, c.want, r.Balance(), "%+v", c)
		require.Equal(t, c.want, drain(r), "%+v", c)
	}
}

func TestRatioOffEarnsNothing(t *testing.T) {
	r := MustNewRatio(RatioConfig{Ratio: Off, MinPerSecond: 1, Clock: newClock()})
	for range 1000 {
		r.Deposit()
	}
	require.Equal(t, 10, r.Balance())
}

func TestRatioForgetsDepositsAfterTTL(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{Ratio: 1, MinPerSecond: Off, Clock: clock})
	r.Deposit()
	clock.Advance(10*time.Second - 1)
	require.Equal(t, 1, r.Balance())
	clock.Advance(1)
	require.Equal(t, 0, r.Balance())
}

func TestRatioForgetsWhatWasSpentAfterTTL(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{MinPerSecond: 1, Clock: clock})
	require.Equal(t, 10, drain(r))
	clock.Advance(10*time.Second - 1)
	require.Equal(t, 0, r.Balance())
	clock.Advance(1)
	require.Equal(t, 10, r.Balance())
}

func TestRatioRemembersForNineTenthsOfTheTTLAtLeast(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{MinPerSecond: 1, Clock: clock})
	clock.Advance(time.Second - 1) // the end of the first tenth
	require.Equal(t, 10, drain(r))
	clock.Advance(9 * time.Second)
	require.Equal(t, 0, r.Balance(), "9 s later")
	clock.Advance(1)
	require.Equal(t, 10, r.Balance())
}

func TestRatioCountsAReservationUntilItIsDecided(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{MinPerSecond: 1, Clock: clock})
	token, ok := r.Reserve()
	require.True(t, ok)
	require.Equal(t, 9, r.Balance())
	token.Cancel()
	require.Equal(t, 10, r.Balance(), "it goes back at once")
	token.Cancel()
	token.Commit()
	require.Equal(t, 10, r.Balance(), "the first of Commit and Cancel decides")

	token, _ = r.Reserve()
	token.Commit()
	token.Cancel()
	token.Commit()
	require.Equal(t, 9, r.Balance(), "the first of Commit and Cancel decides")
}

func TestRatioCountsASentRetryFromWhenItIsSent(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{MinPerSecond: 1, Clock: clock})
	token, _ := r.Reserve()
	clock.Advance(5 * time.Second)
	token.Commit()
	clock.Advance(9 * time.Second) // 14 s after the reservation
	require.Equal(t, 9, r.Balance())
	clock.Advance(time.Second)
	require.Equal(t, 10, r.Balance())
}

func TestRatioForgetsAReservationThatNobodyDecides(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{MinPerSecond: 1, Clock: clock})
	tokens := reserve(r, 10)
	clock.Advance(10 * time.Second)
	require.Equal(t, 10, r.Balance(), "nothing leaks for ever")

	require.Equal(t, 10, drain(r))
	for _, token := range tokens {
		token.Commit() // all the same: the retry is sent, so it counts, from now on
	}
	require.Equal(t, 0, r.Balance(), "below zero, and never told as such")
	_, ok := r.Reserve()
	require.False(t, ok)
	clock.Advance(10 * time.Second)
	require.Equal(t, 10, r.Balance())

	late, _ := r.Reserve()
	clock.Advance(10 * time.Second)
	late.Cancel()
	require.Equal(t, 10, r.Balance(), "a late Cancel mints nothing")
}

func reserve(b Retry, n int) (tokens []Reservation) {
	for range n {
		token, ok := b.Reserve()
		if !ok {
			break
		}
		tokens = append(tokens, token)
	}
	return tokens
}

func TestRatioUpdateKeepsTheHistory(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{Ratio: 0.2, MinPerSecond: 1, Clock: clock})
	for range 100 {
		r.Deposit()
	}
	require.Equal(t, 30, drain(r))
	require.NoError(t, r.Update(RatioConfig{Ratio: 0.5, MinPerSecond: 2, Clock: clock}))
	require.Equal(t, 20+50-30, r.Balance())
	require.Equal(t, RatioConfig{Ratio: 0.5, MinPerSecond: 2, TTL: 10 * time.Second, Clock: clock}, r.Config())

	require.ErrorContains(t, r.Update(RatioConfig{TTL: time.Hour, Clock: clock}), "TTL is 1h0m0s")
	require.ErrorContains(t, r.Update(RatioConfig{}), "budget: Clock is real time: want the one that it was made with, a *")
	require.ErrorContains(t, r.Update(RatioConfig{Clock: newClock()}), "Clock")
	require.Equal(t, 40, r.Balance(), "an invalid Update changes nothing")
	require.Equal(t, 0.5, r.Config().Ratio)
}

func TestRatioUpdateOfTheTTLKeepsTheHistory(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{Ratio: 1, MinPerSecond: 1, TTL: 10 * time.Second, Clock: clock})
	for range 10 { // one deposit and one retry per second
		r.Deposit()
		tokens := reserve(r, 1)
		tokens[0].Commit()
		clock.Advance(time.Second)
	}
	held := reserve(r, 1)[0]
	require.Equal(t, 10+9-10, r.Balance()) // the first of each has been forgotten

	require.NoError(t, r.Update(RatioConfig{Ratio: 1, MinPerSecond: 1, TTL: 20 * time.Second, Clock: clock}))
	require.Equal(t, 20+9-10, r.Balance(), "what is remembered stays")
	held.Cancel()
	require.Equal(t, 20+9-9, r.Balance(), "a reservation finds its slot again")

	require.NoError(t, r.Update(RatioConfig{Ratio: 1, MinPerSecond: 1, TTL: 3 * time.Second, Clock: clock}))
	require.Equal(t, 3+2-2, r.Balance(), "of the last 3 s, by tenths: those of 1 s and 2 s ago")
	clock.Advance(time.Minute)
	require.Equal(t, 3, r.Balance())
}

func TestRatioUpdateFromAMinuteToASecondAndBack(t *testing.T) {
	clock := newClock()
	r := MustNewRatio(RatioConfig{MinPerSecond: 1, TTL: time.Minute, Clock: clock})
	drain(r)
	require.NoError(t, r.Update(RatioConfig{MinPerSecond: 1, TTL: time.Second, Clock: clock}))
	require.Equal(t, 0, r.Balance(), "spent this very moment")
	require.NoError(t, r.Update(RatioConfig{MinPerSecond: 1, TTL: time.Minute, Clock: clock}))
	require.Equal(t, 0, r.Balance())
	clock.Advance(time.Minute)
	require.Equal(t, 60, r.Balance())
}

func TestRatioAfterAClockJumpIsResetAndNeverStuck(t *testing.T) {
	const decades = 26 * 365 * 24 * time.Hour
	for _, jump := range []time.Duration{-decades, decades, -10 * time.Second, -time.Second, -100 * time.Second} {
		clock := newClock()
		r := MustNewRatio(RatioConfig{Ratio: 1, MinPerSecond: 1, Clock: clock})
		r.Deposit()
		require.Equal(t, 11, drain(r))
		held := reserve(r, 1)
		require.Empty(t, held)
		clock.Advance(jump)
		require.Equal(t, 10, r.Balance(), "what lies ahead is forgotten: %v", jump)
		require.Equal(t, 10, drain(r), "and what happens now counts: %v", jump)
		clock.Advance(20 * time.Second) // after a small jump back, what lay ahead is passed once more
		require.Equal(t, 10, r.Balance(), "%v", jump)
	}
}

func TestRatioInAndOutOfABubble(t *testing.T) {
	r := MustNewRatio(RatioConfig{MinPerSecond: 1}) // as a package-level budget, on real time
	held := reserve(r, 1)[0]
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 10, r.Balance())
		require.Equal(t, 10, drain(r))
		held.Commit()
		require.Equal(t, 0, r.Balance())
		<-time.After(10 * time.Second)
		require.Equal(t, 10, r.Balance())
		require.Equal(t, 10, drain(r))
	})
	require.Equal(t, 10, r.Balance())
	require.Equal(t, 10, drain(r))
}
