package budget

import (
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

func TestRatioDefaults(t *testing.T) {
	require.Equal(t, RatioConfig{Ratio: 0.2, MinPerSecond: 10, TTL: 10 * time.Second}, MustNewRatio(RatioConfig{}).Config())
	cfg := RatioConfig{Ratio: Off, MinPerSecond: 1, TTL: time.Minute}
	require.Equal(t, cfg, MustNewRatio(cfg).Config())
}

func TestRatioRefusesWhatIsOutOfRange(t *testing.T) {
	for want, cfg := range map[string]RatioConfig{
		"budget: Ratio is -0.1: want":          {Ratio: -0.1},
		"budget: Ratio is -2: want":            {Ratio: -2},
		"budget: Ratio is 1000.0000001: want":  {Ratio: 1000.0000001},
		"budget: Ratio is NaN: want":           {Ratio: math.NaN()},
		"budget: Ratio is +Inf: want":          {Ratio: math.Inf(1)},
		"budget: Ratio is -Inf: want":          {Ratio: math.Inf(-1)},
		"budget: MinPerSecond is -2: want":     {MinPerSecond: -2},
		"budget: MinPerSecond is Off and":      {MinPerSecond: Off, Ratio: Off},
		"budget: TTL is -1ns: want":            {TTL: -1},
		"budget: TTL is 999.999999ms: want":    {TTL: time.Second - 1},
		"budget: TTL is 1m0.000000001s: want":  {TTL: time.Minute + 1},
		"budget: Clock is a nil *clockwork.Fa": {Clock: (*clockwork.FakeClock)(nil)},
	} {
		b, err := NewRatio(cfg)
		require.Nil(t, b)
		require.ErrorContains(t, err, want)
		require.Panics(t, func() { MustNewRatio(cfg) })
	}
	_, err := NewRatio(RatioConfig{Ratio: -3, MinPerSecond: -3, TTL: 1})
	for _, field := range []string{"Ratio", "MinPerSecond", "TTL"} {
		require.ErrorContains(t, err, field, "every problem at once")
	}
}

func TestRatioExtremesOverflowNothing(t *testing.T) {
	clock := newClock()
	b := MustNewRatio(RatioConfig{Ratio: 1000, MinPerSecond: math.MaxInt, TTL: time.Minute, Clock: clock})
	b.Deposit()
	require.Equal(t, math.MaxInt, b.Balance())
	_, ok := b.Reserve()
	require.True(t, ok)
}

func TestTokensDefaults(t *testing.T) {
	require.Equal(t, TokenConfig{Capacity: 1, Per: time.Second, Hold: time.Minute}, MustNewTokens(TokenConfig{Capacity: 1}).Config())
	cfg := TokenConfig{Capacity: 1, Refill: 2, Per: 3, Hold: time.Second + 1}
	require.Equal(t, cfg, MustNewTokens(cfg).Config())
}

func TestTokensRefuseWhatIsOutOfRange(t *testing.T) {
	for want, cfg := range map[string]TokenConfig{
		"budget: Capacity is 0: want":          {},
		"budget: Capacity is -1: want":         {Capacity: -1},
		"budget: Refill is -1: want":           {Capacity: 1, Refill: -1},
		"budget: Per is -1s: want":             {Capacity: 1, Per: -time.Second},
		"budget: Hold is 1s: want":             {Capacity: 1, Hold: time.Second},
		"budget: Hold is -1ns: want":           {Capacity: 1, Hold: -1},
		"budget: Clock is a nil *clockwork.Fa": {Capacity: 1, Clock: (*clockwork.FakeClock)(nil)},
	} {
		b, err := NewTokens(cfg)
		require.Nil(t, b)
		require.ErrorContains(t, err, want)
		require.Panics(t, func() { MustNewTokens(cfg) })
	}
	_, err := NewTokens(TokenConfig{Refill: -1, Per: -1, Hold: -1})
	for _, field := range []string{"Capacity", "Refill", "Per", "Hold"} {
		require.ErrorContains(t, err, field, "every problem at once")
	}
}

// Config is what is in force: New and Update take it back, and nothing changes.
func TestWhatConfigTellsIsTakenBack(t *testing.T) {
	for _, cfg := range []RatioConfig{{}, {Ratio: Off}, {MinPerSecond: Off}, {Ratio: 1000, MinPerSecond: 1, TTL: time.Minute}} {
		b := MustNewRatio(cfg)
		told := b.Config()
		require.NoError(t, b.Update(told))
		require.Equal(t, told, b.Config())
		require.Equal(t, told, MustNewRatio(told).Config())
	}
	for _, cfg := range []TokenConfig{{Capacity: 1}, {Capacity: 3, Refill: 2, Per: 1, Hold: time.Hour}} {
		b := MustNewTokens(cfg)
		told := b.Config()
		require.NoError(t, b.Update(told))
		require.Equal(t, told, b.Config())
		require.Equal(t, told, MustNewTokens(told).Config())
	}
}
