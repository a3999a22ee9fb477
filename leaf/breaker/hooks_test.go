package breaker

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func hair() Config { return Config{MinCalls: 1, FailureRate: 1, OpenFor: 10 * time.Second} }

func TestTheHookMayUseTheBreaker(t *testing.T) { // C18, first part
	var r *rig
	var states []State
	cfg := hair()
	cfg.OnChange = func(c Change) {
		r.told = append(r.told, c)
		states = append(states, r.State())
		_ = r.Snapshot()
		_ = r.Peek(bg)
		_, _ = leaf.Do(bg, r, func(context.Context) (int, error) { return 0, nil })
	}
	r = newRig(t, cfg)
	r.run(1, failure)
	r.to(10)
	r.run(1, success)
	require.Equal(t, []State{Closed, Open, HalfOpen, Closed}, r.route())
	require.Equal(t, []State{Open, HalfOpen, Closed}, states, "committed before it is told")
}

func TestWhatTheHookChangesIsToldAfterItReturns(t *testing.T) {
	var r *rig
	var log []string
	cfg := hair()
	cfg.OnChange = func(c Change) {
		r.told = append(r.told, c)
		log = append(log, "begin "+c.To.String())
		if c.To == Open {
			_ = r.Reset(bg)
		}
		log = append(log, "end "+c.To.String())
	}
	r = newRig(t, cfg)
	r.run(1, failure)
	require.Equal(t, []string{"begin open", "end open", "begin closed", "end closed"}, log)
	r.route()
}

func TestChangesAreToldInCommitOrderUnderLoad(t *testing.T) { // C18, the stress run
	const goroutines, each = 8, 10_000
	var told []Change // the hook is never run twice at once, or the race detector finds it
	cfg := Config{Window: Count(1), OpenFor: 1, OnChange: func(c Change) { told = append(told, c) }}
	b := MustNew(cfg)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				p, err := b.Acquire(bg)
				if err != nil {
					continue
				}
				o := success
				if (i+g)%2 == 0 {
					o = failure
				}
				_ = p.Settle(bg, o)
			}
		})
	}
	wg.Wait()
	require.Greater(t, len(told), 100)
	at := Closed
	for i, c := range told {
		if c.Seq != uint64(i+1) || c.From != at || c.To == at {
			t.Fatalf("change %d after %v: %+v", i, at, c)
		}
		at = c.To
	}
	require.EqualValues(t, len(told), b.machine.seq, "every change is told")
	require.Equal(t, at, b.machine.state)
}

func TestAPanickingHookLeavesTheBreakerWhole(t *testing.T) { // C18, last part
	first := true
	var r *rig
	cfg := hair()
	cfg.OnChange = func(c Change) {
		r.told = append(r.told, c)
		if first {
			first = false
			panic("hook")
		}
	}
	r = newRig(t, cfg)
	end := r.begin()
	require.PanicsWithValue(t, "hook", func() { end(failure) })
	r.is(Open)
	r.to(10)
	r.run(1, success)
	r.is(Closed)
	require.Equal(t, []State{Closed, Open, HalfOpen, Closed}, r.route(), "later changes are told")
}

// A hook that unwinds out of Acquire leaves nobody to settle the probe.
func TestAHookThatUnwindsOutOfAcquireLeavesTheProbesSlotFree(t *testing.T) {
	for name, unwind := range map[string]func(){"panic": func() { panic("hook") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			cfg := hair()
			cfg.OnChange = func(c Change) {
				if c.To == HalfOpen {
					unwind()
				}
			}
			r := newRig(t, cfg)
			r.run(1, failure)
			r.to(10)
			done := make(chan any)
			go func() {
				defer func() { done <- recover() }()
				_, _ = r.Acquire(bg)
				t.Error("Acquire returned")
			}()
			<-done
			r.is(HalfOpen)
			require.Zero(t, r.Snapshot().Probes)
			r.run(1, success)
			r.is(Closed)
		})
	}
}

func TestAHooksPanicPropagatesFromControlCalls(t *testing.T) {
	cfg := hair()
	cfg.OnChange = func(Change) { panic("hook") }
	r := newRig(t, cfg)
	require.PanicsWithValue(t, "hook", func() { _ = r.ForceOpen(bg) })
	r.is(Open)
	require.PanicsWithValue(t, "hook", func() { _ = r.Auto(bg) })
	r.is(Closed)
}

func TestReadsFireNoHook(t *testing.T) {
	cfg := hair()
	r := newRig(t, cfg)
	r.run(1, failure)
	r.to(10)
	for range 3 {
		r.is(HalfOpen)
		require.Equal(t, HalfOpen, r.Snapshot().State)
		require.Equal(t, "half-open", r.Inspect().State)
		require.NoError(t, r.Peek(bg))
	}
	require.Len(t, r.told, 1)
}

func TestReasonsCarryNumbersAndNeverAResult(t *testing.T) {
	r := newRig(t, Config{Name: "billing", MinCalls: 20, FailureRate: 0.6, OpenFor: time.Second, ProbeSuccesses: 2, Probes: 2})
	r.run(8, success)
	r.run(5, failure)
	require.Equal(t, "5 failures in a row", r.told[0].Reason, "the row is judged while there are few results")

	r = newRig(t, Config{Name: "billing", Consecutive: Off, FailureRate: 0.6, OpenFor: time.Second, ProbeSuccesses: 2, Probes: 2})
	r.run(8, success)
	r.run(12, failure)
	r.to(1)
	r.run(1, failure)
	r.to(2)
	r.run(2, success)
	_ = r.ForceOpen(bg)
	_ = r.Auto(bg)
	var reasons []string
	for _, c := range r.told {
		require.Equal(t, "billing", c.Name)
		require.NotContains(t, c.Reason, errDown.Error())
		reasons = append(reasons, c.Reason)
	}
	require.Equal(t, []string{"failure rate 12/20", "open time is over", "probe failed", "open time is over",
		"2 probes succeeded", "forced", "automatic again"}, reasons)
	require.Equal(t, "automatic again", r.Snapshot().Reason)
}

func TestTheHookInForceAtTheCommitIsTold(t *testing.T) {
	r := newRig(t, hair())
	cfg := r.Config()
	var second []Change
	cfg.OnChange = func(c Change) { second = append(second, c) }
	r.run(1, failure)
	require.NoError(t, r.Update(cfg))
	_ = r.Reset(bg)
	require.Len(t, r.told, 1)
	require.Len(t, second, 1)
	require.EqualValues(t, 2, second[0].Seq)
}
