package breaker

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

func TestForceOpenRefusesUntilAutoOrReset(t *testing.T) {
	for name, end := range map[string]func(*rig) error{
		"Auto":  func(r *rig) error { return r.Auto(bg) },
		"Reset": func(r *rig) error { return r.Reset(bg) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, small())
			r.run(3, failure)
			late := r.begin()
			require.NoError(t, r.ForceOpen(bg))
			require.NoError(t, r.ForceOpen(bg), "again")
			for _, at := range []float64{0, 10, 1e6} {
				r.to(at)
				require.Zero(t, r.refused().Wait)
				require.ErrorIs(t, r.Peek(bg), ErrOpen)
				s := r.Snapshot()
				require.Equal(t, Snapshot{State: Open, Forced: true, Reason: "forced"}, ageless(s))
			}
			require.NoError(t, end(r))
			late(failure)
			require.Equal(t, Snapshot{State: Closed, Reason: r.told[1].Reason}, ageless(r.Snapshot()), "closed and empty")
			require.Equal(t, []State{Closed, Open, Closed}, r.route())
		})
	}
}

func TestForceClosedAdmitsAndKeepsCounting(t *testing.T) {
	r := newRig(t, small())
	r.run(3, failure)
	before := r.begin()
	require.NoError(t, r.ForceClosed(bg))
	require.Empty(t, r.told, "no change of state")
	before(failure)
	r.run(96, failure)
	r.is(Closed)
	r.counts(100, 100)
	require.True(t, r.Snapshot().Forced)
	late := r.begin()
	require.NoError(t, r.Auto(bg))
	late(failure)
	r.is(Closed)
	r.counts(0, 0)
	require.False(t, r.Snapshot().Forced)
	r.run(5, failure)
	r.is(Open)

	require.NoError(t, r.ForceClosed(bg))
	r.counts(0, 0)
	r.run(45, failure)
	r.is(Closed)
	r.to(1000)
	r.is(Closed)
	require.NoError(t, r.ForceOpen(bg))
	r.is(Open)
	require.NoError(t, r.Reset(bg))
	require.Equal(t, []State{Closed, Open, Closed, Open, Closed}, r.route())
}

func TestAutoWithoutAForceDoesNothing(t *testing.T) {
	r := newRig(t, small())
	r.run(3, failure)
	require.NoError(t, r.Auto(bg))
	r.counts(3, 3)
	r.run(2, failure)
	require.NoError(t, r.Auto(bg))
	r.is(Open)
}

func TestResetClosesFresh(t *testing.T) {
	cfg := small()
	cfg.OpenGrowth = 2
	r := newRig(t, cfg)
	r.run(5, failure)
	r.to(10)
	r.run(1, failure)
	require.Equal(t, 20*time.Second, r.refused().Wait)
	require.NoError(t, r.Reset(bg))
	r.is(Closed)
	r.counts(0, 0)
	r.run(5, failure)
	require.Equal(t, 10*time.Second, r.refused().Wait, "the first open time")

	r.to(20)
	probe := r.begin()
	require.NoError(t, r.Reset(bg))
	probe(failure)
	r.is(Closed)
	r.counts(0, 0)
	late := r.begin()
	require.NoError(t, r.Reset(bg))
	late(failure)
	r.counts(0, 0)
}

func TestUpdateKeepsHistory(t *testing.T) {
	r := newRig(t, small())
	r.run(4, failure)
	in := r.begin()
	cfg := r.Config()
	cfg.MinCalls, cfg.OpenFor, cfg.Name = 6, time.Minute, "renamed"
	require.NoError(t, r.Update(cfg))
	require.Equal(t, cfg.OpenFor, r.Config().OpenFor)
	r.counts(4, 4)
	in(failure)
	r.is(Open) // five in a row, fewer than MinCalls
	require.Equal(t, time.Minute, r.refused().Wait)
	require.Equal(t, "renamed", r.refused().Name)

	cfg.OpenFor, cfg.MaxOpenFor = time.Second, time.Second
	require.NoError(t, r.Update(cfg))
	require.Equal(t, time.Minute, r.refused().Wait, "the running open time stays")
	r.to(60)
	_ = r.begin()
	cfg.Probes = 2
	require.NoError(t, r.Update(cfg))
	require.Equal(t, 1, r.Snapshot().Probes, "leases stay")
	_ = r.begin()
	r.refused()
	cfg.Probes = 1
	require.NoError(t, r.Update(cfg))
	require.Equal(t, 2, r.Snapshot().Probes)
	r.refused()
}

// A success may be counted without judging; not the first one after the thresholds have changed.
func TestTheNextResultAfterUpdateIsJudgedByTheNewThresholds(t *testing.T) {
	cfg := Config{MinCalls: 5, FailureRate: 0.5}
	r := newRig(t, cfg)
	r.run(10, success)
	r.run(4, failure)
	r.run(5, success)
	cfg = r.Config()
	cfg.FailureRate = 0.2
	require.NoError(t, r.Update(cfg))
	r.is(Closed) // by itself it trips nothing
	r.run(1, success)
	r.is(Open)
	require.Equal(t, "failure rate 4/20", r.Snapshot().Reason)
}

func TestAnotherWindowStartsEmpty(t *testing.T) {
	for _, w := range []Window{Count(50), Count(100).Within(time.Minute), Time(9 * time.Second)} {
		r := newRig(t, Config{Window: Time(10 * time.Second), MinCalls: 5, Consecutive: 4})
		r.run(3, failure)
		in := r.begin()
		cfg := r.Config()
		cfg.Window = w
		require.NoError(t, r.Update(cfg))
		r.counts(0, 0)
		in(failure)
		r.counts(1, 1)
		r.is(Closed) // the row begins anew too
	}
}

func TestUpdateWithAnInvalidConfigChangesNothing(t *testing.T) {
	r := newRig(t, small())
	r.run(3, failure)
	before := r.Config()
	for _, change := range []func(*Config){
		func(c *Config) { c.MinCalls = -1; c.Window = Count(7) },
		func(c *Config) { c.FailureRate = math.NaN() },
		func(c *Config) { c.Clock = nil; c.MinCalls = 1 },
		func(c *Config) { c.Clock = clockwork.NewFakeClock() },
		func(c *Config) { c.Clock = (*clockwork.FakeClock)(nil) },
	} {
		cfg := r.Config()
		change(&cfg)
		require.ErrorContains(t, r.Update(cfg), "breaker: ")
		require.Equal(t, before.MinCalls, r.Config().MinCalls)
		require.Equal(t, before.Window, r.Config().Window)
		require.Same(t, r.clock, r.Config().Clock)
		r.counts(3, 3)
	}
	cfg := r.Config()
	cfg.Clock, cfg.MinCalls = nil, -1
	err := r.Update(cfg)
	require.ErrorContains(t, err, "Clock is real time: want the one that it was made with, a *breaker.steppedClock")
	require.ErrorContains(t, err, "MinCalls is -1", "every fault at once")
	require.NoError(t, MustNew(Config{}).Update(Config{Clock: clockwork.NewRealClock()}), "nil is real time")
}

func TestInspect(t *testing.T) {
	r := newRig(t, Config{Name: "x", MinCalls: 50, FailureRate: 0.5, Consecutive: Off, SlowCall: time.Second, Probes: 4, OpenFor: 10 * time.Second})
	r.run(3, success)
	r.run(1, failure)
	slow := success
	slow.Took = time.Second
	r.run(1, slow)
	want := func(state string, values ...float64) leaf.Snapshot {
		s := leaf.Snapshot{Kind: "breaker", Name: "x", State: state}
		for i, name := range []string{"failure_rate", "calls", "failures", "slow", "probes", "wait_seconds"} {
			s.Gauges = append(s.Gauges, leaf.Gauge{Name: name, Value: values[i]})
		}
		s.Gauges[0].Limit, s.Gauges[4].Limit = 0.5, 4
		return s
	}
	require.Equal(t, want("closed", 0.2, 5, 1, 1, 0, 0), r.Inspect())
	r.run(45, failure)
	r.to(2.5)
	require.Equal(t, want("open", 0, 0, 0, 0, 0, 7.5), r.Inspect())
	r.to(10)
	_ = r.begin()
	require.Equal(t, want("half-open", 0, 0, 0, 0, 1, 0), r.Inspect())
	require.Zero(t, MustNew(Config{FailureRate: Off}).Inspect().Gauges[0].Limit)
}

func TestACircuitIsEverythingThatAConsoleNeeds(t *testing.T) {
	var c Circuit = MustNew(Config{})
	require.NoError(t, c.ForceOpen(context.Background()))
	require.Equal(t, Open, c.State())
}
