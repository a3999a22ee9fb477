package redisbreaker

import (
	"context"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// Peek is the refusal that Acquire would give now, as far as this process knows, or nil. It asks no store and changes nothing.
func (b *Breaker) Peek(ctx context.Context) error {
	v := b.view.Load()
	if v.state != breaker.Closed {
		if err := b.refuses(v); err != nil {
			return err
		}
	}
	if b.localDecides(v, b.now()) {
		return b.local.Peek(ctx)
	}
	return nil
}

// State is what the next Acquire would decide on, as far as this process knows: a pure read, without a command. In an outage with
// leaf.FailLocal it is the local breaker's, where that one decides.
func (b *Breaker) State() breaker.State {
	v := b.view.Load()
	now := int64(0)
	if v.state == breaker.Open {
		now = b.now()
	}
	switch {
	case b.localDecides(v, now):
		return b.local.State()
	case v.state == breaker.Open && !v.forced && v.left(now) == 0:
		return breaker.HalfOpen
	}
	return v.state
}

// Snapshot is one consistent read of what this process knows, and as pure. Calls, Failures, Slow, Probes and ProbeSuccesses are the
// fleet's, as the last answer told; Since is unknown of what had happened before this process's first answer, except for an opening.
func (b *Breaker) Snapshot() breaker.Snapshot {
	v := b.view.Load()
	now := b.now()
	if b.localDecides(v, now) {
		return b.local.Snapshot()
	}
	s := breaker.Snapshot{
		Name: b.policy.Load().Name, State: v.state, Forced: v.forced, Reason: v.reason,
		Calls: v.calls, Failures: v.failures, Slow: v.slow, Probes: v.probes, ProbeSuccesses: v.successes, Wait: v.left(now),
		Since: ago(v.moved, now), Trip: v.trip, TripAgo: ago(v.tripped, now),
	}
	if s.Calls > 0 {
		s.FailureRate = float64(s.Failures) / float64(s.Calls)
	}
	if s.State == breaker.Open && !s.Forced && s.Wait == 0 {
		s.State = breaker.HalfOpen
	}
	return s
}

// Inspect: kind "breaker", the state's name, and the gauges of the local breaker: "failure_rate" (limit FailureRate), "calls",
// "failures", "slow", "probes" (limit Probes) and "wait_seconds". A limit that is Off is 0.
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
