package breaker

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// small is the configuration that most cases share.
func small() Config {
	return Config{MinCalls: 5, FailureRate: 0.5, OpenFor: 10 * time.Second}
}

func TestLateFailureDoesNotExtendOpenTime(t *testing.T) { // C12
	r := newRig(t, small())
	var late []func(leaf.Outcome)
	for range 20 {
		late = append(late, r.begin())
	}
	r.to(1)
	r.run(5, failure)
	r.is(Open)
	for i := 1; i <= 19; i++ {
		r.to(1 + float64(i)*0.5)
		late[i-1](failure)
	}
	r.to(10.999)
	require.Equal(t, time.Millisecond, r.refused().Wait)
	r.to(11)
	probe := r.begin()
	require.Equal(t, []State{Closed, Open, HalfOpen}, r.route(), "one trip, at t=1")
	probe(success)
	r.is(Closed)
	r.to(11.5)
	late[19](failure)
	r.is(Closed)
	r.counts(0, 0)
	require.Equal(t, []State{Closed, Open, HalfOpen, Closed}, r.route())
}

func TestNeutralProbeGivesItsSlotBack(t *testing.T) { // C13 (a)
	r := newRig(t, small())
	r.run(5, failure)
	r.to(10)
	probe := r.begin()
	require.Equal(t, HalfOpen, r.refused().State)
	r.to(10.5)
	probe(canceled)
	r.is(HalfOpen)
	require.Zero(t, r.Snapshot().Probes)
	r.to(10.6)
	r.run(1, success)
	r.is(Closed)
}

func TestCallersWhoLeaveAreNeutralAndOwnTimeoutsAreFailures(t *testing.T) { // C13 (b)
	r := newRig(t, small())
	r.run(5, canceled)
	r.counts(0, 0)
	r.is(Closed)
	ends := []func(leaf.Outcome){r.begin(), r.begin(), r.begin(), r.begin(), r.begin()}
	for i, end := range ends {
		r.counts(i, i)
		end(leaf.Outcome{Verdict: leaf.TimedOut, Err: context.DeadlineExceeded})
	}
	r.is(Open)
	require.Equal(t, "failure rate 5/5", r.Snapshot().Reason)
}

func TestAProbeThatAnInnerGuardRefusedWasNone(t *testing.T) { // C14
	cfg := Config{MinCalls: 2, FailureRate: 0.5, OpenFor: 10 * time.Second}
	r := newRig(t, cfg)
	r.run(2, failure)
	for _, at := range []float64{10, 10.5} {
		r.to(at)
		r.begin()(notRun)
		s := r.Snapshot()
		require.Equal(t, HalfOpen, s.State)
		require.Zero(t, s.Probes)
		require.Zero(t, s.Failures)
	}
	r.to(11.1)
	r.run(1, success)
	r.is(Closed)
}

func TestBothNestedBreakersCloseOnOneProbe(t *testing.T) { // C14, second run
	cfg := Config{MinCalls: 2, FailureRate: 0.5, OpenFor: 10 * time.Second}
	outer := newRig(t, cfg)
	outer.run(2, failure)
	cfg.Clock, cfg.OpenFor = outer.clock, 20*time.Second
	inner, err := New(cfg)
	require.NoError(t, err)
	for range 2 {
		_, err := leaf.Do(bg, inner, func(context.Context) (int, error) { return 0, errDown })
		require.ErrorIs(t, err, errDown)
	}
	ran := 0
	nested := func() error {
		_, err := leaf.Do(bg, outer, func(ctx context.Context) (int, error) {
			return leaf.Do(ctx, inner, func(context.Context) (int, error) { ran++; return 1, nil })
		})
		return err
	}
	for at := 10.0; at < 20; at++ {
		outer.to(at)
		require.ErrorIs(t, nested(), ErrOpen)
		outer.is(HalfOpen)
		require.Zero(t, outer.Snapshot().Probes, "the slot is free again")
		require.Equal(t, Open, inner.State())
	}
	outer.to(20)
	require.NoError(t, nested())
	require.Equal(t, 1, ran)
	outer.is(Closed)
	require.Equal(t, Closed, inner.State())
}

// storm is n goroutines that call together; it returns the permits of those who got in.
func storm(t *testing.T, r *rig, n int) []func(leaf.Outcome) {
	var mu sync.Mutex
	var in []func(leaf.Outcome)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			p, err := r.Acquire(bg)
			if err != nil {
				require.ErrorIs(t, err, ErrOpen)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			in = append(in, func(o leaf.Outcome) { _ = p.Settle(bg, o) })
		})
	}
	wg.Wait()
	return in
}

func TestProbesAreACeilingThatReleasesNeverRaise(t *testing.T) { // C15
	cfg := small()
	cfg.Probes, cfg.ProbeSuccesses = 3, 3
	r := newRig(t, cfg)
	r.run(5, failure)
	for i := range 1000 {
		r.to(9.9 * float64(i+1) / 1000)
		r.refused()
	}
	r.to(10)
	in := storm(t, r, 100)
	require.Len(t, in, 3)
	r.to(10.5)
	for _, end := range in {
		r.is(HalfOpen)
		end(success)
	}
	r.is(Closed)
	r.counts(0, 0) // a refusal is no outcome
	r.run(1, failure)
	r.counts(1, 1)
	r.is(Closed)

	r.to(20)
	r.run(4, failure)
	r.is(Open)
	r.to(30)
	for range 10 {
		r.begin()(canceled)
	}
	require.Len(t, storm(t, r, 100), 3, "not 13")
}

func TestAFreshBreakerHasAJSONSafeRate(t *testing.T) { // C45
	r := newRig(t, Config{Name: "x", MinCalls: 1})
	s := r.Snapshot()
	require.Zero(t, s.FailureRate)
	r.is(Closed)
	got, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"x","state":"closed","forced":false,"calls":0,"failures":0,"slow":0,"failure_rate":0,
		"probes":0,"probe_successes":0,"wait":0,"reason":"","since":0,"trip":"","trip_ago":0}`, string(got))
	for _, g := range r.Inspect().Gauges {
		require.Zero(t, g.Value, g.Name)
	}
}
