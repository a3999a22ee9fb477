package breaker

import (
	"context"

	"github.com/fairlead/fairlead/leaf"
)

// Peek is the refusal that Acquire would give now, or nil. It changes nothing and fires no hook. ctx is not looked at:
// that it is done is no refusal.
func (b *Breaker) Peek(context.Context) error {
	if tokenState(b.word.Load()) == Closed {
		return nil
	}
	if err := b.refusesOpen(); err != nil {
		return err
	}
	b.mu.Lock()
	e, refused := b.machine.peek(b.policy.Load(), &moment{clock: b.clock})
	b.mu.Unlock()
	if !refused {
		return nil
	}
	return b.refusal(&e)
}

// State is what the next Acquire would decide on: a pure read, that fires no hook.
func (b *Breaker) State() State {
	if tokenState(b.word.Load()) == Closed {
		return Closed
	}
	return b.Snapshot().State
}

// Snapshot is one consistent read, and as pure.
func (b *Breaker) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.policy.Load()
	s := b.machine.snapshot(b.clock.Now(), b.tally.counted())
	s.Name = p.Name
	return s
}

// Inspect: kind "breaker", the state's name, gauges "failure_rate" (limit FailureRate), "calls", "failures", "slow",
// "probes" (limit Probes) and "wait_seconds". A limit that is Off is 0.
func (b *Breaker) Inspect() leaf.Snapshot {
	s, p := b.Snapshot(), b.policy.Load()
	return leaf.Snapshot{Kind: "breaker", Name: s.Name, State: s.State.String(), Gauges: []leaf.Gauge{
		{Name: "failure_rate", Value: s.FailureRate, Limit: max(0, p.FailureRate)},
		{Name: "calls", Value: float64(s.Calls)},
		{Name: "failures", Value: float64(s.Failures)},
		{Name: "slow", Value: float64(s.Slow)},
		{Name: "probes", Value: float64(s.Probes), Limit: float64(p.Probes)},
		{Name: "wait_seconds", Value: s.Wait.Seconds()},
	}}
}
