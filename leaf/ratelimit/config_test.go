package ratelimit

import (
	"cmp"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// C45
func TestConfigErrorsNameEveryFieldAndValue(t *testing.T) {
	typedNil := (*clockwork.FakeClock)(nil)
	for _, c := range []struct {
		cfg  Config
		want []string
	}{
		{Config{}, []string{"Rate is 0: want 1 or more"}},
		{Config{Rate: -1}, []string{"Rate is -1: want 1 or more"}},
		{Config{Rate: 1, Per: -time.Second}, []string{"Per is -1s"}},
		{Config{Rate: 1, Per: 999}, []string{"Rate is 1: want at most one per µs, that is 0 per 999ns"}},
		{Config{Rate: 1_000_001}, []string{"Rate is 1000001: want at most one per µs, that is 1000000 per 1s"}},
		{Config{Rate: math.MaxInt, Per: math.MaxInt}, []string{fmt.Sprintf("Rate is %d: want at most one per µs", math.MaxInt)}},
		{Config{Rate: 1, Burst: -1}, []string{"Burst is -1"}},
		{Config{Rate: 1, Per: math.MaxInt64, Burst: math.MaxInt}, []string{fmt.Sprintf("Burst is %d: want a smaller one", math.MaxInt)}},
		{Config{Rate: 1, MaxWait: -1}, []string{"MaxWait is -1ns"}},
		{Config{Rate: 1, Clock: typedNil}, []string{"Clock is a nil *clockwork.FakeClock"}},
		{Config{Per: -1, Burst: -2, MaxWait: -3, Clock: typedNil}, []string{"Rate is 0", "Per is -1ns", "Burst is -2", "MaxWait is -3ns", "Clock is"}},
	} {
		l, err := New(c.cfg)
		require.Nil(t, l)
		ok := MustNew(Config{Name: "keep", Rate: 1})
		update := ok.Update(c.cfg)
		for _, want := range c.want {
			require.ErrorContains(t, err, "ratelimit: "+want)
			require.ErrorContains(t, update, "ratelimit: "+want)
		}
		require.Equal(t, "keep", ok.Config().Name, "an invalid cfg changes nothing")
		require.Equal(t, 1.0, ok.Tokens())
		require.Panics(t, func() { MustNew(c.cfg) })
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	for want, cfg := range map[Config]Config{
		{Rate: 100, Per: time.Second, Burst: 100}:   {Rate: 100},
		{Rate: 1, Per: time.Microsecond, Burst: 1}:  {Rate: 1, Per: time.Microsecond},
		{Rate: 1, Per: time.Second, Burst: 1 << 19}: {Rate: 1, Burst: 1 << 19},
	} {
		got := MustNew(cfg).Config()
		require.Equal(t, []any{want.Rate, want.Per, want.Burst}, []any{got.Rate, got.Per, got.Burst})
	}
	c, used := MustNew(Config{Rate: 1}).Clock()
	require.Nil(t, c)
	require.True(t, used)
}

// Config is what is in force: New and Update take it back, and a Burst that followed Rate goes on doing so.
func TestWhatConfigTellsIsTakenBack(t *testing.T) {
	for _, cfg := range []Config{{Rate: 1}, {Rate: 1, Per: time.Hour}, {Rate: 10, Burst: 10}, {Rate: 10, Burst: 3, MaxWait: 1}} {
		l := MustNew(cfg)
		told := l.Config()
		require.NoError(t, l.Update(told))
		require.Equal(t, told, l.Config())
		require.Equal(t, told, MustNew(told).Config())
		told.Rate = 7
		require.NoError(t, l.Update(told))
		require.Equal(t, cmp.Or(cfg.Burst, 7), l.Config().Burst)
	}
	q := MustNewQuota("q", 5)
	require.NoError(t, q.Update(q.Config()))
	require.Equal(t, Config{Name: "q", Burst: 5}, q.Config())
}

func TestQuotaConfig(t *testing.T) {
	most := int(min(math.MaxInt, int64(maxQuota))) // an int may have 32 bits
	for _, n := range []int{0, -1, math.MinInt, math.MaxInt} {
		if n == most {
			continue
		}
		q, err := NewQuota("trial", n)
		require.Nil(t, q)
		require.ErrorContains(t, err, `ratelimit "trial": Burst is`)
		require.Panics(t, func() { MustNewQuota("trial", n) })
	}
	q := MustNewQuota("trial", most)
	require.NoError(t, q.AllowN(most))
	require.Zero(t, q.Tokens())
	require.Equal(t, Config{Name: "trial", Burst: most}, q.Config())
	_, used := q.Clock()
	require.False(t, used)
	err := q.Update(Config{Rate: 1, Per: 1, Burst: 0, MaxWait: 1, Clock: (*clockwork.FakeClock)(nil)})
	for _, field := range []string{"Rate is 1", "Per is 1ns", "Burst is 0", "MaxWait is 1ns", "Clock is"} {
		require.ErrorContains(t, err, field)
	}
}

func TestClockMayNotChange(t *testing.T) {
	f := newFixture(t, Config{Rate: 1})
	require.ErrorContains(t, f.Update(Config{Name: "x", Rate: 2}),
		`ratelimit "x": Clock is real time: want the one that it was made with, a *`)
	require.ErrorContains(t, f.Update(Config{Rate: 2, Clock: clockwork.NewFakeClock()}), "Clock is ")
	require.Equal(t, 1, f.Config().Rate)
	require.NoError(t, f.Update(Config{Rate: 2, Clock: f.clock}))
	c, _ := f.Clock()
	require.Same(t, f.clock, c)
}
