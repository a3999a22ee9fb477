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
	bad := check.List{Name: b.name}
	if b.name == "" {
		bad.Bad("pipeline", "name", `""`, "a name, for events and errors")
	}
	if b.fallbackTimeout < 0 {
		bad.Bad("pipeline", "FallbackTimeout", b.fallbackTimeout, "a positive duration (0 = 1s)")
	}
	b = b.checkNil(&bad) // what follows asks the layers
	b.checkOrder(&bad)
	b.checkTimes(&bad)
	clk := b.checkClocks(&bad)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return b.compile(clk), nil
}

// checkNil finds layers that were given and are nothing. What it returns is b without them, so that the others can be asked.
func (b Builder) checkNil(bad *check.List) Builder {
	if n := len(b.layers()); n > maxGuards {
		bad.Bad("pipeline", "the number of guards", n, fmt.Sprintf("at most %d", maxGuards))
	}
	none := func(k kind, layer any) bool {
		if b.set.has(k) && check.Nil(layer) {
			bad.Bad("pipeline", k.String(), check.Type(layer), "a layer (leave the method out for none)")
			return true
		}
		return false
	}
	none(kindTimeout, b.total) // a pointer: nil is no layer as it is
	none(kindRetry, b.retry)
	for _, l := range []struct {
		kind  kind
		guard *leaf.Guard
	}{{kindCooldown, &b.cooldown}, {kindBreaker, &b.breaker}, {kindRateLimit, &b.rateLimit}, {kindBulkhead, &b.bulkhead}} {
		if none(l.kind, *l.guard) {
			*l.guard = nil
		}
	}
	none(kindAttemptTimeout, b.attempt)
	var extra []leaf.Guard
	for i, g := range b.extra {
		if check.Nil(g) {
			bad.Bad("pipeline", fmt.Sprintf("With guard %d", i+1), check.Type(g), "a guard")
			continue
		}
		extra = append(extra, g)
	}
	b.extra = extra
	return b
}

// checkOrder finds switches that have nothing to switch. A layer that was given as nil is that mistake alone.
func (b Builder) checkOrder(bad *check.List) {
	needs := func(on bool, name string, with kind, want string) {
		if on && !(b.set.has(with) && b.set.has(kindRetry)) {
			bad.Bad("pipeline", name, "set", "both a "+want+" and a Retry")
		}
	}
	needs(b.breakerOutside, "BreakerOutsideRetry", kindBreaker, "Breaker")
	needs(b.retryFull, "RetryOnBulkheadFull", kindBulkhead, "Bulkhead")
	needs(b.retryLimited, "RetryOnRateLimited", kindRateLimit, "RateLimit")
}

// checkTimes compares what layers hold for a time with how long a call may last.
func (b Builder) checkTimes(bad *check.List) {
	var call, attempt time.Duration // what the timeouts let them last; 0 = as long as they like
	if b.total != nil {
		call = b.total.Config().Limit
		attempt = call
	}
	if b.attempt != nil {
		attempt = b.attempt.Config().Limit
		if b.total != nil && attempt >= call {
			bad.Bad("pipeline", "AttemptTimeout", attempt, fmt.Sprintf("below the total timeout of %v", call))
			return // nobody knows which of the two the others should be compared with
		}
		b.checkHold(bad, attempt)
	}
	for _, l := range b.layers() {
		held := attempt
		if l.kind == kindBreaker && b.breakerOutside { // its permit lives for the whole call
			held = max(call, attempt)
		}
		if leaser, ok := l.guard.(leaf.Leaser); ok {
			if lease := leaser.Lease(); lease > 0 && lease < held {
				bad.Bad("pipeline", l.kind.String()+" lease", lease, fmt.Sprintf("at least the %v that the timeouts let a call last", held))
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
	var all []used
	ask := func(k kind, layer any) {
		if s, ok := layer.(interface{ Guarded() leaf.Guard }); ok { // a leaf.Shadow
			layer = s.Guarded()
		}
		l, ok := layer.(clocked)
		if !ok {
			return
		}
		if c, ok := l.Clock(); ok {
			all = append(all, used{k, c})
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
	if len(all) == 0 {
		return clock.Clock{}
	}
	owner := usual(all)
	for _, u := range all {
		if clock.Same(owner.clock, u.clock) {
			continue
		}
		is := clock.Name(u.clock)
		if is == clock.Name(owner.clock) {
			is = fmt.Sprintf("another %T", u.clock)
		}
		bad.Bad("pipeline", "the clock of "+u.kind.String(), is, fmt.Sprintf("the clock of %s, %s", owner.kind, clock.Name(owner.clock)))
	}
	return clock.Of(owner.clock)
}

// used is a clock that a layer goes by.
type used struct {
	kind  kind
	clock clockwork.Clock
}

// usual is the first layer on the clock that most go by: one layer that differs is one mistake, wherever it stands.
func usual(all []used) (owner used) {
	most := 0
	for _, u := range all {
		n := 0
		for _, other := range all {
			if clock.Same(u.clock, other.clock) {
				n++
			}
		}
		if n > most {
			owner, most = u, n
		}
	}
	return owner
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
		fallbackTimeout: b.fallbackTimeout, onRejected: b.onRejected, observer: b.observe, observe: b.observe,
	}
	if p.fallbackTimeout == 0 {
		p.fallbackTimeout = defaultFallbackTimeout
	}
	if b.toggle.Wired() {
		p.wire(b.toggle)
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
			l.share()
		}
		p.guards = append(p.guards, l)
	}
	return p
}

var (
	_ clocked = (*retry.Retry)(nil)
	_ clocked = (*timeout.Timeout)(nil)
)
