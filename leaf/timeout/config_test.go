package timeout_test

import (
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/timeout"
)

func TestInvalidConfigNamesFieldAndValue(t *testing.T) { // C45
	var typedNil *clockwork.FakeClock
	for _, row := range []struct {
		cfg  timeout.Config
		want []string
	}{
		{timeout.Config{}, []string{"timeout: Limit is 0s: want a positive duration"}},
		{timeout.Config{Limit: -time.Second}, []string{"timeout: Limit is -1s: want a positive duration"}},
		{timeout.Config{Limit: math.MinInt64}, []string{"timeout: Limit is -2562047h47m16.854775808s: want a positive duration"}},
		{timeout.Config{Name: "bank"}, []string{`timeout "bank": Limit is 0s: want a positive duration`}},
		{timeout.Config{Limit: 1, Clock: typedNil}, []string{"timeout: Clock is a nil *clockwork.FakeClock: want a clock, or nil for real time"}},
		{timeout.Config{Limit: -1, Clock: typedNil}, []string{"Limit is -1ns", "Clock is a nil"}},
	} {
		got, err := timeout.New(row.cfg)
		require.Nil(t, got)
		for _, want := range row.want {
			require.ErrorContains(t, err, want)
		}
		require.PanicsWithError(t, err.Error(), func() { timeout.MustNew(row.cfg) })
		good := timeout.MustNew(timeout.Config{Limit: time.Second})
		require.EqualError(t, good.Update(row.cfg), err.Error())
		require.Equal(t, timeout.Config{Limit: time.Second}, good.Config(), "an invalid Update changes nothing")
	}
}

func TestConfigIsWhatIsInForce(t *testing.T) {
	fake := clockwork.NewFakeClock()
	t1 := timeout.MustNew(timeout.Config{Name: "a", Limit: time.Second, Clock: fake})
	require.NoError(t, t1.Update(timeout.Config{Name: "b", Limit: time.Minute, Clock: fake}))
	require.Equal(t, timeout.Config{Name: "b", Limit: time.Minute, Clock: fake}, t1.Config())
	clock, used := t1.Clock()
	require.Equal(t, clockwork.Clock(fake), clock)
	require.True(t, used)

	real := limit("", time.Second)
	clock, used = real.Clock()
	require.Nil(t, clock)
	require.True(t, used)
}

func TestUpdateKeepsTheClock(t *testing.T) {
	fake := clockwork.NewFakeClock()
	injected := timeout.MustNew(timeout.Config{Limit: time.Second, Clock: fake})
	for is, other := range map[string]clockwork.Clock{"real time": nil, "another *clockwork.FakeClock": clockwork.NewFakeClock()} {
		require.EqualError(t, injected.Update(timeout.Config{Name: "x", Limit: time.Minute, Clock: other}), `timeout "x": Clock is `+is+
			": want the one that it was made with, a *clockwork.FakeClock: it may not change")
		require.Equal(t, time.Second, injected.Config().Limit)
	}
	real := limit("", time.Second)
	require.ErrorContains(t, real.Update(timeout.Config{Limit: time.Minute, Clock: fake}), "timeout: Clock is a *clockwork.FakeClock: want the one that it was made with, real time")
	require.NoError(t, real.Update(timeout.Config{Limit: time.Minute, Clock: clockwork.NewRealClock()}), "both are real time")
}
