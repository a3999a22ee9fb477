package breaker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// halfOpen is a rig at t=10 whose circuit may be probed.
func halfOpen(t *testing.T, change func(*Config)) *rig {
	cfg := hair()
	if change != nil {
		change(&cfg)
	}
	r := newRig(t, cfg)
	r.run(1, failure)
	r.to(10)
	r.is(HalfOpen)
	return r
}

func TestACallAtExactlyTheEndOfTheOpenTimeMayProbe(t *testing.T) {
	r := newRig(t, hair())
	r.to(3)
	r.run(1, failure)
	r.clock.step(10*time.Second - 1)
	r.is(Open)
	require.EqualValues(t, 1, r.refused().Wait)
	r.clock.step(1)
	r.is(HalfOpen)
	r.begin()
}

func TestAnIdleOpenBreakerReadsHalfOpen(t *testing.T) {
	r := halfOpen(t, nil)
	require.Equal(t, Snapshot{State: HalfOpen, Reason: "failure rate 1/1"}, ageless(r.Snapshot()))
	require.Len(t, r.told, 1, "nothing is committed by looking")
}

func TestAHungProbeCostsItsSlotForItsLeaseOnly(t *testing.T) {
	for name, c := range map[string]struct {
		lease time.Duration
		free  float64
	}{"default: the open time": {0, 20}, "explicit": {5 * time.Second, 15}} {
		t.Run(name, func(t *testing.T) {
			r := halfOpen(t, func(c2 *Config) { c2.ProbeLease = c.lease })
			_ = r.begin() // hangs for ever
			r.to(c.free - 0.001)
			e := r.refused()
			require.Equal(t, HalfOpen, e.State)
			require.Equal(t, time.Millisecond, e.Wait)
			require.Equal(t, 1, r.Snapshot().Probes)
			r.to(c.free)
			require.Zero(t, r.Snapshot().Probes)
			r.run(1, success)
			r.is(Closed)
		})
	}
}

func TestTheDefaultLeaseIsTheGrownOpenTime(t *testing.T) {
	r := halfOpen(t, func(c *Config) { c.OpenGrowth = 2 })
	r.run(1, failure)
	r.to(29.999)
	r.refused()
	r.to(30)
	_ = r.begin()
	require.Equal(t, 20*time.Second, r.refused().Wait)
}

func TestALateResultCountsWhileTheEpisodeLasts(t *testing.T) {
	r := halfOpen(t, func(c *Config) { c.ProbeLease, c.ProbeSuccesses = 5*time.Second, 2 })
	first := r.begin()
	r.to(15)
	second := r.begin()
	r.to(16)
	first(success)
	require.Equal(t, 1, r.Snapshot().ProbeSuccesses)
	require.Equal(t, 1, r.Snapshot().Probes, "it frees no slot but its own")
	r.refused()
	second(success)
	r.is(Closed)

	r = halfOpen(t, func(c *Config) { c.ProbeLease = 5 * time.Second })
	first = r.begin()
	r.to(15)
	second = r.begin()
	first(failure)
	r.is(Open)
	second(success)
	r.is(Open)
	r.to(24.999)
	require.Equal(t, time.Millisecond, r.refused().Wait, "open from the late failure on")
}

func TestAProbeOfAnEarlierEpisodeChangesNothing(t *testing.T) { // C41, in one process
	r := halfOpen(t, func(c *Config) { c.Probes = 3 })
	old1, old2 := r.begin(), r.begin()
	r.begin()(failure)
	r.to(20)
	in := r.begin()
	old1(failure)
	r.is(HalfOpen)
	old2(success)
	r.is(HalfOpen)
	require.Equal(t, 1, r.Snapshot().Probes)
	in(success)
	r.is(Closed)
	r.counts(0, 0)
}

func TestNoLeaseAdmitsEveryone(t *testing.T) {
	r := halfOpen(t, func(c *Config) { c.ProbeLease, c.ProbeSuccesses = NoLease, 3 })
	a, b, c, d := r.begin(), r.begin(), r.begin(), r.begin()
	require.Zero(t, r.Snapshot().Probes)
	a(canceled)
	b(success)
	c(success)
	r.is(HalfOpen)
	d(success)
	r.is(Closed)
}

func TestOneFailedProbeReopensWithAGrownTime(t *testing.T) {
	r := halfOpen(t, func(c *Config) { c.OpenGrowth, c.MaxOpenFor = 3, 40*time.Second })
	r.run(1, failure)
	require.Equal(t, 30*time.Second, r.refused().Wait)
	r.to(40)
	r.run(1, failure)
	require.Equal(t, 40*time.Second, r.refused().Wait, "capped")
	r.to(80)
	r.run(1, success)
	r.is(Closed)
	r.run(1, failure)
	require.Equal(t, 10*time.Second, r.refused().Wait, "closing begins anew")
}

func TestASlowProbeIsASuccessAndACancelledOneIsNone(t *testing.T) {
	r := halfOpen(t, func(c *Config) { c.SlowCall = time.Second })
	o := canceled
	o.Took = time.Minute
	r.begin()(o)
	r.is(HalfOpen)
	require.Zero(t, r.Snapshot().ProbeSuccesses)
	o = success
	o.Took = time.Minute
	r.begin()(o)
	r.is(Closed)
	r.counts(0, 0)
}

func TestACtxThatIsDoneTakesNoProbe(t *testing.T) { // C21, the breaker's part
	r := halfOpen(t, nil)
	shutdown := errors.New("shutdown")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(shutdown)
	for _, acquire := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := r.Acquire(ctx); return err },
		func(ctx context.Context) error { _, err := r.TryAcquire(ctx); return err },
	} {
		err := acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, shutdown)
		require.NotErrorIs(t, err, ErrOpen)
	}
	require.Len(t, r.told, 1, "not even the transition")
	require.NoError(t, r.Peek(ctx))
	r.run(1, success)
	r.is(Closed)
	_, err := r.Acquire(ctx)
	require.ErrorIs(t, err, shutdown)
}

func TestRefusals(t *testing.T) {
	r := newRig(t, Config{Name: "billing", MinCalls: 1, OpenFor: 4 * time.Second})
	r.run(1, failure)
	e := r.refused()
	require.Equal(t, &OpenError{Name: "billing", State: Open, Wait: 4 * time.Second, Cause: errDown}, e)
	require.EqualError(t, e, `breaker "billing": open, next probe in 4s`)
	require.ErrorIs(t, e, ErrOpen)
	require.NotErrorIs(t, e, errDown, "the cause is data")
	require.True(t, e.Rejected())
	wait, ok := e.RetryAfter()
	require.True(t, ok)
	require.Equal(t, 4*time.Second, wait)

	r.to(4)
	probe := r.begin()
	r.to(5)
	e = r.refused()
	require.Equal(t, &OpenError{Name: "billing", State: HalfOpen, Wait: 3 * time.Second, Cause: errDown}, e)
	require.EqualError(t, e, `breaker "billing": half-open, all probes are out, next probe in 3s`)
	require.ErrorIs(t, e, ErrOpen)
	probe(success)

	_ = r.ForceOpen(bg)
	e = r.refused()
	require.Equal(t, &OpenError{Name: "billing", State: Open}, e)
	require.EqualError(t, e, `breaker "billing": open`)
	_, ok = e.RetryAfter()
	require.False(t, ok)
	require.EqualError(t, &OpenError{}, "breaker: closed")
	require.Equal(t, "State(7)", State(7).String())
}
