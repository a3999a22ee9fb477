package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

func TestZeroFieldsMeanTheDocumentedDefaults(t *testing.T) {
	got := MustNew(Config{}).Config()
	got.told = following{}
	require.Equal(t, Config{
		Window: Time(10 * time.Second), MinCalls: 20, FailureRate: 0.5, Consecutive: 5,
		OpenFor: 5 * time.Second, OpenGrowth: 1, MaxOpenFor: 5 * time.Minute, Probes: 1, ProbeSuccesses: 1,
	}, got, "ProbeLease, BlameAfter follow something and stay 0")

	require.Equal(t, 0.5, MustNew(Config{SlowCall: 1}).Config().SlowRate)
	require.Equal(t, time.Hour, MustNew(Config{OpenFor: time.Hour}).Config().MaxOpenFor)
}

func TestMinCallsIsClampedToACountWindow(t *testing.T) { // C45
	r := newRig(t, Config{Window: Count(5), MinCalls: 10, Consecutive: Off})
	require.Equal(t, 5, r.Config().MinCalls)
	r.run(2, success)
	r.run(2, failure)
	r.is(Closed)
	r.run(1, failure)
	r.is(Open)
	require.Equal(t, 5, MustNew(Config{Window: Count(5)}).Config().MinCalls, "the default too")
}

func TestBadConfigsAreErrorsThatNameFieldAndValue(t *testing.T) { // C45
	nan, inf := math.NaN(), math.Inf(1)
	var noClock *clockwork.FakeClock
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{MinCalls: -1}, "MinCalls is -1"},
		{Config{FailureRate: 1.5}, "FailureRate is 1.5"},
		{Config{FailureRate: -0.5}, "FailureRate is -0.5"},
		{Config{FailureRate: nan}, "FailureRate is NaN"},
		{Config{FailureRate: inf}, "FailureRate is +Inf"},
		{Config{FailureRate: -inf}, "FailureRate is -Inf"},
		{Config{FailureCount: -2}, "FailureCount is -2"},
		{Config{Window: Count(5), FailureCount: 6}, "FailureCount is 6: want at most the window's 5 calls"},
		{Config{Consecutive: -2}, "Consecutive is -2"},
		{Config{FailureRate: Off, Consecutive: 20}, "Consecutive is 20: want less than MinCalls, 20,"},
		{Config{FailureRate: Off, Consecutive: 5, Window: Count(5)}, "Consecutive is 5: want less than MinCalls, 5,"},
		{Config{SlowCall: -2}, "SlowCall is -2ns"},
		{Config{SlowCall: 1, SlowRate: nan}, "SlowRate is NaN"},
		{Config{SlowCall: 1, SlowRate: 1.01}, "SlowRate is 1.01"},
		{Config{SlowCall: 1, SlowRate: -1}, "SlowRate is -1"},
		{Config{SlowRate: 0.5}, "SlowRate is 0.5: want 0 where SlowCall is off"},
		{Config{SlowCall: Off, SlowRate: 0.5}, "SlowRate is 0.5: want 0 where SlowCall is off"},
		{Config{OpenFor: -1}, "OpenFor is -1ns"},
		{Config{OpenGrowth: 0.5}, "OpenGrowth is 0.5"},
		{Config{OpenGrowth: -1}, "OpenGrowth is -1"},
		{Config{OpenGrowth: nan}, "OpenGrowth is NaN"},
		{Config{OpenGrowth: inf}, "OpenGrowth is +Inf"},
		{Config{MaxOpenFor: -1}, "MaxOpenFor is -1ns"},
		{Config{MaxOpenFor: time.Second}, "MaxOpenFor is 1s: want at least OpenFor, 5s"},
		{Config{OpenFor: 2, MaxOpenFor: 1}, "MaxOpenFor is 1ns: want at least OpenFor, 2ns"},
		{Config{Probes: -1}, "Probes is -1"},
		{Config{ProbeSuccesses: -1}, "ProbeSuccesses is -1"},
		{Config{ProbeLease: -2}, "ProbeLease is -2ns"},
		{Config{BlameAfter: -2}, "BlameAfter is -2ns"},
		{Config{Window: Count(0)}, "Window is count(0): want a count from 1 to 65536"},
		{Config{Window: Count(-1)}, "Window is count(-1)"},
		{Config{Window: Count(65537)}, "Window is count(65537)"},
		{Config{Window: Count(5).Within(0)}, "Window is count(5) within 0s: want Within a positive time"},
		{Config{Window: Count(5).Within(-1)}, "Window is count(5) within -1ns"},
		{Config{Window: Time(0)}, "Window is time(0s): want a time from 10ns"},
		{Config{Window: Time(9)}, "Window is time(9ns)"},
		{Config{Window: Time(-time.Second)}, "Window is time(-1s)"},
		{Config{Window: Time(time.Second).Within(time.Second)}, "Window is time(1s) within 1s: want Within on a count window"},
		{Config{Window: Window{}.Within(time.Second)}, "Window is time(10s) within 1s"},
		{Config{SlowCall: -2, SlowRate: 0.5}, "SlowCall is -2ns"},
		{Config{SlowRate: 7}, "SlowRate is 7: want 0 where SlowCall is off"},
		{Config{FailureRate: Off, Consecutive: Off}, "FailureRate is Off, as are Consecutive, FailureCount and SlowCall: want one of them"},
		{Config{FailureRate: Off, Consecutive: Off, FailureCount: Off, SlowCall: Off}, "FailureRate is Off, as are Consecutive,"},
		{Config{Clock: noClock}, "Clock is a nil *clockwork.FakeClock"},
	} {
		b, err := New(c.cfg)
		require.ErrorContains(t, err, "breaker: "+c.want)
		require.Nil(t, b)
		require.NotContains(t, err.Error(), "\n", "one fault, one message")
		require.Panics(t, func() { MustNew(c.cfg) })
	}
}

// Any one rule is enough.
func TestOneRuleMakesABreaker(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.FailureRate = 1 }, func(c *Config) { c.Consecutive = 1 },
		func(c *Config) { c.FailureCount = 1 }, func(c *Config) { c.SlowCall = 1 },
	} {
		cfg := Config{FailureRate: Off, Consecutive: Off}
		change(&cfg)
		_, err := New(cfg)
		require.NoError(t, err, "%+v", cfg)
	}
}

func TestConfigErrorsNameTheBreaker(t *testing.T) {
	_, err := New(Config{Name: "bank", OpenFor: -1, Probes: -1})
	require.EqualError(t, err, "breaker \"bank\": OpenFor is -1ns: want positive\n"+
		"breaker \"bank\": Probes is -1: want from 1, or 0 for the default")
}

// What may not change is named as it was and as it would become; a Clock that is nothing is that one mistake.
func TestClockMayNotChange(t *testing.T) {
	var none *clockwork.FakeClock
	b := MustNew(Config{Clock: clockwork.NewFakeClock()})
	for want, c := range map[string]clockwork.Clock{
		"Clock is real time: want the one that it was made with, a *clockwork.FakeClock: it may not change":                    nil,
		"Clock is another *clockwork.FakeClock: want the one that it was made with, a *clockwork.FakeClock: it may not change": clockwork.NewFakeClock(),
		"Clock is a nil *clockwork.FakeClock: want a clock, or nil for real time":                                              none,
	} {
		require.EqualError(t, b.Update(Config{Clock: c}), "breaker: "+want)
	}
}

func TestEveryFaultIsNamedAtOnce(t *testing.T) {
	_, err := New(Config{Window: Count(0), MinCalls: -1, OpenFor: -1, Probes: -7})
	for _, field := range []string{"Window", "MinCalls", "OpenFor", "Probes"} {
		require.ErrorContains(t, err, "breaker: "+field+" is ")
	}
}

func TestExtremesThatAreAllowed(t *testing.T) {
	for _, cfg := range []Config{
		{Window: Count(65536), FailureCount: 65536}, {Window: Count(1)}, {Window: Time(10)}, {Window: Time(math.MaxInt64)},
		{Window: Count(1).Within(1)}, {Window: Count(1).Within(math.MaxInt64)}, {FailureRate: 1}, {FailureRate: math.SmallestNonzeroFloat64},
		{MinCalls: math.MaxInt}, {OpenFor: math.MaxInt64, OpenGrowth: math.MaxFloat64, MaxOpenFor: math.MaxInt64, OpenJitter: true},
		{Probes: math.MaxInt, ProbeSuccesses: math.MaxInt, ProbeLease: math.MaxInt64},
		{FailureRate: Off, Consecutive: 19}, {Consecutive: 20},
	} {
		r := newRig(t, cfg)
		r.run(3, success)
		r.run(200, canceled)
		r.is(Closed)
		_ = r.Inspect()
	}
}

func TestWindowNames(t *testing.T) {
	require.Equal(t, "count(100)", Count(100).String())
	require.Equal(t, "count(100) within 1m0s", Count(100).Within(time.Minute).String())
	require.Equal(t, "time(10s)", Time(10*time.Second).String())
	require.Equal(t, "time(10s)", Window{}.String())
}

func TestLeaseIsTheExplicitOneOnly(t *testing.T) {
	require.Zero(t, MustNew(Config{}).Lease())
	require.Zero(t, MustNew(Config{ProbeLease: NoLease}).Lease())
	require.Equal(t, time.Minute, MustNew(Config{ProbeLease: time.Minute}).Lease())
}

func TestWantsTookForSlowCallsOnly(t *testing.T) {
	require.False(t, MustNew(Config{}).WantsTook())
	require.False(t, MustNew(Config{SlowCall: Off}).WantsTook())
	require.True(t, MustNew(Config{SlowCall: time.Second}).WantsTook())
}

func TestClockIsTheConfigured(t *testing.T) {
	fake := clockwork.NewFakeClock()
	c, used := MustNew(Config{Clock: fake}).Clock()
	require.True(t, used)
	require.Same(t, fake, c)
	c, used = MustNew(Config{}).Clock()
	require.True(t, used)
	require.Nil(t, c)
}
