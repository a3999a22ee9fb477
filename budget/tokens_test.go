package budget

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTokensStartFullAndAreNeverMoreThanCapacity(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 10, Refill: 10, Clock: clock})
	require.Equal(t, 10, b.Balance())
	clock.Advance(time.Hour)
	b.Deposit()
	require.Equal(t, 10, b.Balance(), "neither time nor deposits go beyond Capacity")
	require.Equal(t, 10, drain(b))
	_, ok := b.Reserve()
	require.False(t, ok)
}

func TestTokensWithoutRefillAreForTheProcessesLife(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 2, Clock: clock})
	require.Equal(t, 2, drain(b))
	clock.Advance(100 * 365 * 24 * time.Hour)
	require.Equal(t, 0, b.Balance())
}

func TestTokensFlowInEvenlyAndExactly(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 3, Refill: 3, Per: time.Second, Clock: clock})
	require.Equal(t, 3, drain(b))
	clock.Advance(333_333_333)
	require.Equal(t, 0, b.Balance(), "1 ns too early")
	clock.Advance(1)
	require.Equal(t, 1, b.Balance())
	clock.Advance(333_333_332)
	require.Equal(t, 1, b.Balance(), "the rest of the first nanosecond was kept")
	clock.Advance(1)
	require.Equal(t, 2, b.Balance())
	clock.Advance(333_333_333)
	require.Equal(t, 3, b.Balance(), "3 per second, to the nanosecond")
}

func TestTokensPolledOftenGetTheirWholeRate(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 5, Refill: 1, Per: 10 * time.Second, Clock: clock})
	drain(b)
	sent := 0
	for range 1000 {
		clock.Advance(100 * time.Millisecond)
		sent += drain(b)
	}
	require.Equal(t, 10, sent, "fractions are not thrown away by looking")
}

func TestTokensReservationGoesBackOnceOnCancel(t *testing.T) {
	b := MustNewTokens(TokenConfig{Capacity: 10, Clock: newClock()})
	tokens := reserve(b, 3)
	require.Equal(t, 7, b.Balance())
	tokens[0].Cancel()
	tokens[0].Cancel()
	tokens[0].Commit()
	require.Equal(t, 8, b.Balance(), "the first of Commit and Cancel decides")
	tokens[2].Commit()
	tokens[2].Cancel()
	require.Equal(t, 8, b.Balance(), "the first of Commit and Cancel decides")
	tokens[1].Cancel()
	require.Equal(t, 9, b.Balance())
}

func TestTokensUndecidedReservationGoesBackAfterHold(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 2, Hold: 5 * time.Second, Clock: clock})
	first := reserve(b, 1)[0]
	clock.Advance(time.Second)
	second := reserve(b, 1)[0]
	clock.Advance(4*time.Second - 1)
	require.Equal(t, 0, b.Balance())
	clock.Advance(1)
	require.Equal(t, 1, b.Balance(), "at Hold exactly")
	clock.Advance(time.Second)
	require.Equal(t, 2, b.Balance())
	first.Cancel()
	second.Cancel()
	require.Equal(t, 2, b.Balance(), "a late Cancel mints nothing")
}

func TestTokensCommittedAfterHoldAreSpentAllTheSame(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 2, Refill: 1, Per: time.Hour, Hold: 5 * time.Second, Clock: clock})
	late := reserve(b, 2)
	clock.Advance(5 * time.Second)
	require.Equal(t, 2, drain(b))
	late[0].Commit() // nobody has looked since, and the pool is empty: a debt
	late[0].Cancel()
	require.Equal(t, 0, b.Balance())
	clock.Advance(time.Hour)
	require.Equal(t, 0, b.Balance(), "the debt is paid first")
	clock.Advance(time.Hour)
	require.Equal(t, 1, b.Balance())
	late[1].Cancel()
	require.Equal(t, 1, b.Balance())
}

func TestTokensUpdateKeepsTheBalance(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 10, Refill: 1, Per: 10 * time.Second, Clock: clock})
	reserve(b, 4)
	clock.Advance(5 * time.Second) // half a token
	require.NoError(t, b.Update(TokenConfig{Capacity: 20, Refill: 1, Per: time.Second, Clock: clock}))
	require.Equal(t, 6, b.Balance(), "not filled up")
	clock.Advance(time.Second / 2)
	require.Equal(t, 7, b.Balance(), "the half that had flowed in keeps its size")
	require.NoError(t, b.Update(TokenConfig{Capacity: 3, Clock: clock}))
	require.Equal(t, 3, b.Balance(), "at most Capacity")
	require.Equal(t, TokenConfig{Capacity: 3, Per: time.Second, Hold: time.Minute, Clock: clock}, b.Config())

	require.ErrorContains(t, b.Update(TokenConfig{Clock: clock}), "Capacity is 0")
	require.ErrorContains(t, b.Update(TokenConfig{Capacity: 1}), "budget: Clock is real time: want the one that it was made with, a *")
	require.Equal(t, 3, b.Config().Capacity, "an invalid Update changes nothing")
	require.Equal(t, 3, b.Balance())
}

func TestTokensUpdateOfHoldCountsForWhatIsHeld(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 2, Clock: clock})
	reserve(b, 1)
	require.NoError(t, b.Update(TokenConfig{Capacity: 2, Hold: 2 * time.Second, Clock: clock}))
	clock.Advance(2 * time.Second)
	require.Equal(t, 2, b.Balance())
}

func TestTokensAfterAClockJumpMintNothingAndAreNeverStuck(t *testing.T) {
	const decades = 26 * 365 * 24 * time.Hour
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: 10, Refill: 1, Per: time.Minute, Hold: 5 * time.Second, Clock: clock})
	drained := reserve(b, 10)
	for _, token := range drained[:8] {
		token.Commit()
	}
	clock.Advance(-decades)
	require.Equal(t, 0, b.Balance(), "time that goes back mints nothing")
	clock.Advance(5 * time.Second)
	require.Equal(t, 2, b.Balance(), "what is held goes back after Hold, not in 26 years")
	clock.Advance(time.Minute - 5*time.Second)
	require.Equal(t, 3, b.Balance(), "and tokens flow in")
	clock.Advance(decades)
	require.Equal(t, 10, b.Balance())
}

func TestTokensExtremesOverflowNothing(t *testing.T) {
	clock := newClock()
	b := MustNewTokens(TokenConfig{Capacity: math.MaxInt, Refill: math.MaxInt, Per: 1, Hold: math.MaxInt64, Clock: clock})
	token := reserve(b, 1)[0]
	require.Equal(t, math.MaxInt-1, b.Balance())
	token.Cancel()
	token.Cancel()
	require.Equal(t, math.MaxInt, b.Balance())
	reserve(b, 2)
	clock.Advance(290 * 365 * 24 * time.Hour)
	require.Equal(t, math.MaxInt, b.Balance())

	slow := MustNewTokens(TokenConfig{Capacity: 1, Refill: 1, Per: math.MaxInt64, Clock: clock})
	drain(slow)
	clock.Advance(math.MaxInt64 - 1)
	require.Equal(t, 0, slow.Balance())
	clock.Advance(1)
	require.Equal(t, 1, slow.Balance())
}

func TestTokensInAndOutOfABubble(t *testing.T) {
	b := MustNewTokens(TokenConfig{Capacity: 10, Refill: 1, Per: time.Hour})
	require.Len(t, reserve(b, 10), 10)
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 0, b.Balance())
		<-time.After(2 * time.Hour)
		require.Equal(t, 10, b.Balance())
		require.Equal(t, 10, drain(b))
	})
	require.LessOrEqual(t, b.Balance(), 10)
}
