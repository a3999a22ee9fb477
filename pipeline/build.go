package pipeline

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/jonboulle/clockwork"
)

// defaultFallbackTimeout is how long the context of a DoOr fallback lives when the call's own time is over.
const defaultFallbackTimeout = time.Second

// plan checks everything at once, then puts the layers in their order.
func (b Builder) plan() (*plan, error) {
	var bad check.List
	if b.name == "" {
		bad.Bad("pipeline", "name", `""`, "a name, for events and errors")
	}
	if b.fallbackTimeout < 0 {
		bad.Bad("pipeline", "FallbackTimeout", b.fallbackTimeout, "a positive duration (0 = 1s)")
	}
	b.checkNil(&bad)
	if err := bad.Err(); err != nil {
		return nil, err // what follows asks the layers
	}
	b.checkOrder(&bad)
	b.checkTimes(&bad)
	clk := b.checkClocks(&bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return b.compile(clk), nil
}

// checkNil finds layers that were given and are nothing.
func (b Builder) checkNil(bad *check.List) {
	given := func(k kind, layer any) {
		if b.set.has(k) && check.Nil(layer) {
			bad.Bad("pipeline", k.String(), fmt.Sprintf("a nil %T", layer), "a layer (leave the method out for none)")
		}
	}
	given(kindTimeout, b.total)
	given(kindRetry, b.retry)
	given(kindCooldown, b.cooldown)
	given(kindBreaker, b.breaker)
	given(kindRateLimit, b.rateLimit)
	given(kindBulkhead, b.bulkhead)
	given(kindAttemptTimeout, b.attempt)
	for i, g := range b.extra {
		if check.Nil(g) {
			bad.Bad("pipeline", fmt.Sprintf("With guard %d", i+1), fmt.Sprintf("a nil %T", g), "a guard")
		}
	}
	if n := len(b.layers()); n > maxGuards {
		bad.Bad("pipeline", "the number of guards", n, fmt.Sprintf("at most %d", maxGuards))
	}
}

// checkOrder finds switches that have nothing to switch.
func (b Builder) checkOrder(bad *check.List) {
	if b.breakerOutside && (b.breaker == nil || b.retry == nil) {
		bad.Bad("pipeline", "BreakerOutsideRetry", "set", "both a Breaker and a Retry")
	}
	if b.retryFull && (b.bulkhead == nil || b.retry == nil) {
		bad.Bad("pipeline", "RetryOnBulkheadFull", "set", "both a Bulkhead and a Retry")
	}
	if b.retryLimited && (b.rateLimit == nil || b.retry == nil) {
		bad.Bad("pipeline", "RetryOnRateLimited", "set", "both a RateLimit and a Retry")
	}
}

// checkTimes compares what layers hold for a time with how long a call may last.
func (b Builder) checkTimes(bad *check.List) {
	var longest time.Duration // what the timeouts let an attempt last; 0 = as long as it likes
	if b.total != nil {
		longest = b.total.Config().Limit
	}
	if b.attempt != nil {
		limit := b.attempt.Config().Limit
		if b.total != nil && limit >= longest {
			bad.Bad("pipeline", "AttemptTimeout", limit, fmt.Sprintf("below the total timeout of %v", longest))
		}
		longest = limit
		b.checkHold(bad, limit)
	}
	if longest == 0 {
		return
	}
	for _, l := range b.layers() {
		if leaser, ok := l.guard.(leaf.Leaser); ok {
			if lease := leaser.Lease(); lease > 0 && lease < longest {
				bad.Bad("pipeline", l.kind.String()+" lease", lease,
					fmt.Sprintf("at least the %v that the timeouts let a call last", longest))
			}
		}
	}
}

// checkHold: a token that comes back while its retry still runs would be spent twice.
func (b Builder) checkHold(bad *check.List, attempt time.Duration) {
	if b.retry == nil {
		return
	}
	if tokens, ok := b.retry.Config().Budget.(*budget.Tokens); ok && tokens != nil {
		if hold := tokens.Config().Hold; hold-time.Second <= attempt {
			bad.Bad("pipeline", "retry budget Hold", hold, fmt.Sprintf("more than 1s above the attempt timeout of %v", attempt))
		}
	}
}

// clocked is a layer that can say what it reads time from.
type clocked interface {
	Clock() (c clockwork.Clock, used bool)
}

// checkClocks finds the one clock of all layers: durations of two clocks must not be compared.
func (b Builder) checkClocks(bad *check.List) clock.Clock {
	var first clockwork.Clock
	var owner string
	ask := func(k kind, layer any) {
		if s, ok := layer.(interface{ Guarded() leaf.Guard }); ok { // a leaf.Shadow
			layer = s.Guarded()
		}
		l, ok := layer.(clocked)
		if !ok {
			return
		}
		c, used := l.Clock()
		switch {
		case !used:
		case owner == "":
			first, owner = c, k.String()
		case !clock.Same(first, c):
			bad.Bad("pipeline", "the clock of "+k.String(), name(c), fmt.Sprintf("the clock of %s, %s", owner, name(first)))
		}
	}
	if b.total != nil {
		ask(kindTimeout, b.total)
	}
	if b.retry != nil {
		ask(kindRetry, b.retry)
	}
	for _, l := range b.layers() {
		ask(l.kind, l.guard)
	}
	if b.attempt != nil {
		ask(kindAttemptTimeout, b.attempt)
	}
	return clock.Of(first)
}

func name(c clockwork.Clock) string {
	if clock.IsReal(c) {
		return "real time"
	}
	return fmt.Sprintf("a %T", c)
}

// layers is every guard, in the order of an attempt.
func (b Builder) layers() []layer {
	var ls []layer
	add := func(k kind, g leaf.Guard, retried bool) {
		if g != nil {
			ls = append(ls, layer{guard: g, kind: k, retried: retried})
		}
	}
	add(kindCooldown, b.cooldown, false)
	add(kindBreaker, b.breaker, false)
	add(kindRateLimit, b.rateLimit, b.retryLimited)
	for _, g := range b.extra {
		add(kindGuard, g, false)
	}
	add(kindBulkhead, b.bulkhead, b.retryFull)
	return ls
}

// compile puts checked layers in order and finds out, once, what each can do more.
func (b Builder) compile(clk clock.Clock) *plan {
	p := &plan{
		name: b.name, clock: clk, total: b.total, retry: b.retry, attempt: b.attempt,
		fallbackTimeout: b.fallbackTimeout, onRejected: b.onRejected, observe: b.observe,
	}
	if p.fallbackTimeout == 0 {
		p.fallbackTimeout = defaultFallbackTimeout
	}
	for _, l := range b.layers() {
		if t, ok := l.guard.(leaf.Timed); ok {
			p.timed = append(p.timed, t)
		}
		if l.kind == kindBreaker && b.breakerOutside {
			p.outside = &l
			continue
		}
		switch l.kind {
		case kindCooldown:
			p.cooldown, _ = l.guard.(leaf.Peeker)
			p.hinter, _ = l.guard.(leaf.Hinter)
		case kindBreaker:
			p.breaker, _ = l.guard.(leaf.Peeker)
		}
		if clk.Real() {
			l.at, _ = l.guard.(sharer)
		}
		p.guards = append(p.guards, l)
	}
	return p
}

var (
	_ clocked = (*retry.Retry)(nil)
	_ clocked = (*timeout.Timeout)(nil)
)
