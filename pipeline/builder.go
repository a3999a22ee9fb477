package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/toggle"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
)

// Builder is a value: every method returns a changed copy, and two branches of one base never touch each other.
// Setting a layer again replaces it; With alone adds. Every layer is optional, and one that was not set does nothing; one that
// was set to nil is an error of Build, and no way to leave it out. The zero Builder has no name, which Build refuses: use [For].
type Builder struct {
	name            string
	total, attempt  *timeout.Timeout
	retry           *retry.Retry
	cooldown        leaf.Guard
	breaker         leaf.Guard
	rateLimit       leaf.Guard
	extra           []leaf.Guard
	bulkhead        leaf.Guard
	set             layerSet // what was asked for, so that Build can tell a nil layer from none
	breakerOutside  bool
	retryFull       bool
	retryLimited    bool
	fallbackTimeout time.Duration
	onRejected      func(ctx context.Context, err error) error
	observe         func(ctx context.Context, e Event)
	toggle          toggle.Switch
}

// layerSet is a set of layer kinds.
type layerSet uint16

func (s layerSet) has(k kind) bool      { return s&(1<<k) != 0 }
func (s layerSet) with(k kind) layerSet { return s | 1<<k }

// For begins a pipeline; name is required and goes into events.
func For(name string) Builder {
	return Builder{name: name}
}

// Timeout limits the whole call, backoffs and waits included.
func (b Builder) Timeout(t *timeout.Timeout) Builder {
	b.total, b.set = t, b.set.with(kindTimeout)
	return b
}

// Retry repeats failed attempts.
func (b Builder) Retry(r *retry.Retry) Builder {
	b.retry, b.set = r, b.set.with(kindRetry)
	return b
}

// Cooldown is asked first, and told the positive waits that failures of fn carry (leaf.Hinter). A later attempt waits for it
// instead of being refused, within the retry's MaxRetryAfter and the deadline. MaxRetryAfter bounds each such wait, and no
// attempt is consumed by it: where others keep moving the cooldown on, the sum of a call's waits is bounded by its deadline and
// by retry.Config.MaxElapsed alone.
func (b Builder) Cooldown(g leaf.Guard) Builder {
	b.cooldown, b.set = g, b.set.with(kindCooldown)
	return b
}

// Breaker is asked per attempt, after the cooldown; see BreakerOutsideRetry.
func (b Builder) Breaker(g leaf.Guard) Builder {
	b.breaker, b.set = g, b.set.with(kindBreaker)
	return b
}

// RateLimit is asked per attempt, after the breaker: an open circuit spends no token.
func (b Builder) RateLimit(g leaf.Guard) Builder {
	b.rateLimit, b.set = g, b.set.with(kindRateLimit)
	return b
}

// With adds guards of your own, asked per attempt in the order given, between rate limit and bulkhead.
func (b Builder) With(guards ...leaf.Guard) Builder {
	b.extra = slices.Concat(b.extra, guards) // a new array: branches of one base share nothing
	return b
}

// Bulkhead is asked last: no slot is held while waiting for a token or during a backoff.
func (b Builder) Bulkhead(g leaf.Guard) Builder {
	b.bulkhead, b.set = g, b.set.with(kindBulkhead)
	return b
}

// AttemptTimeout limits each run of fn, from when its work starts.
func (b Builder) AttemptTimeout(t *timeout.Timeout) Builder {
	b.attempt, b.set = t, b.set.with(kindAttemptTimeout)
	return b
}

// BreakerOutsideRetry lets the breaker judge operations, not attempts: one outcome per call, what the retry loop returns.
func (b Builder) BreakerOutsideRetry() Builder {
	b.breakerOutside = true
	return b
}

// RetryOnBulkheadFull retries refusals of the Bulkhead layer; they count against MaxAttempts. Where the retry has Unlimited
// attempts and no delay (Immediate), it spins until the time is over: nothing ran, so nothing is paid for.
func (b Builder) RetryOnBulkheadFull() Builder {
	b.retryFull = true
	return b
}

// RetryOnRateLimited retries refusals of the RateLimit layer; they count against MaxAttempts, and their wait is the lower
// bound of the delay.
func (b Builder) RetryOnRateLimited() Builder {
	b.retryLimited = true
	return b
}

// FallbackTimeout is how long the context of a DoOr fallback lives when the call's own time is over; 0 = 1 s; else positive.
func (b Builder) FallbackTimeout(d time.Duration) Builder {
	b.fallbackTimeout = d
	return b
}

// OnRejected maps the refusal of a call whose fn never ran, outermost, before the fallback. nil, or the original itself, keeps
// the original unchanged; whatever else it returns, the original stays reachable, with its wait, and the result is a rejection
// unless its own Rejected() says no. It is told a guard's error without Rejected() bool as well (a Keyed's make, a broken
// guard): the pipeline knows that fn never ran, so what it is mapped to is a rejection; unmapped, it is none. It runs on the
// caller's goroutine; when it panics, the panic goes on to the caller, in place of a result.
func (b Builder) OnRejected(f func(ctx context.Context, err error) error) Builder {
	b.onRejected = f
	return b
}

// Observe is told every [Event] of the pipeline, on the caller's goroutine and outside every lock; nil costs nothing. When it
// panics, every guard is settled all the same and the panic goes on to the caller, in place of a result and even of a success;
// while fn's own panic is on its way, it is swallowed. call_finished is a call's last event: what the fallback of a [DoOr] then
// makes of the error, no event tells.
func (b Builder) Observe(f func(ctx context.Context, e Event)) Builder {
	b.observe = f
	return b
}

// Build makes the pipeline or joins all errors: an empty name, a nil or typed-nil layer, an order switch without both layers,
// an opt-in without its layer or the retry, an attempt timeout ≥ the total timeout, a leaf.Leaser whose lease is shorter than
// what the pipeline lets a call last (its attempt timeout, else its total timeout; not checked without either), a token
// budget whose Hold is not more than 1 s above the attempt timeout, more than 8 guards, layers on different clocks. It looks
// through a leaf.Shadow at the guard's clock; the guards of a leaf.Keyed it cannot see, nor the clock of a guard of your own
// that has no method Clock() (clock clockwork.Clock, used bool).
func (b Builder) Build() (*Pipeline, error) {
	pl, err := b.plan()
	if err != nil {
		return nil, err
	}
	p := &Pipeline{}
	p.plan.Store(pl)
	return p, nil
}

// MustBuild is Build that panics instead.
func (b Builder) MustBuild() *Pipeline {
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}
