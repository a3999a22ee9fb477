package pipeline

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/reading"
	"github.com/fairlead/fairlead/internal/toggle"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
)

// kind of a layer, in no order: the order is the plan's.
type kind uint8

const (
	kindTimeout kind = iota
	kindBreaker
	kindRetry
	kindCooldown
	kindRateLimit
	kindGuard
	kindBulkhead
	kindAttemptTimeout
)

// String is the name in [Layer].Kind and [Event].Layer.
func (k kind) String() string { return kindNames[k] }

var kindNames = [...]string{
	kindTimeout: "timeout", kindBreaker: "breaker", kindRetry: "retry", kindCooldown: "cooldown",
	kindRateLimit: "ratelimit", kindGuard: "guard", kindBulkhead: "bulkhead", kindAttemptTimeout: "attempt-timeout",
}

// maxGuards bounds what one attempt holds, so that its permits fit on the caller's stack.
const maxGuards = 8

// plan is what Build found out: immutable, and everything that a call needs without asking again what a guard can do.
type plan struct {
	plain   *plan // what is run instead while toggle is off; nil = there is no toggle, and the plan is always in force
	toggle  toggle.Switch
	name    string
	clock   clock.Clock
	total   *timeout.Timeout
	retry   *retry.Retry
	guards  []layer // per attempt, outermost first
	attempt *timeout.Timeout
	outside *layer // a breaker around the retry loop; nil = none

	cooldown leaf.Peeker // peeked before a backoff is slept …
	breaker  leaf.Peeker // … so that the caller is told at once
	hinter   leaf.Hinter // the cooldown, which hears what the other side asked for
	timed    []leaf.Timed

	fallbackTimeout time.Duration
	onRejected      func(ctx context.Context, err error) error
	observer        func(ctx context.Context, e Event) // the Builder's
	observe         func(ctx context.Context, e Event) // the Builder's and all subscribers'; nil = nobody listens
}

// layer is one guard of a plan.
type layer struct {
	guard   leaf.Guard
	at      sharer // guard, where it can be asked with a reading of the attempt's; nil = it cannot …
	reads   bool   // … and goes by it
	quiet   bool   // … and settles without taking time, or going by it
	kind    kind
	retried bool // its refusals are retried, by opt-in
}

// sharer is a guard that says whether a reading of real time that the engine has made is still fresh afterwards: whoever waits
// makes it stale, and so may every guard that is no sharer.
type sharer interface {
	AcquireAt(ctx context.Context, now reading.Instant) (p leaf.Permit, fresh bool, err error)
	Sharing(reading.Instant) reading.Sharing
}

// share finds out whether the guard shares readings. One that embeds such a guard has its methods, too, and is asked by its own.
func (l *layer) share() {
	at, ok := l.guard.(sharer)
	if !ok {
		return
	}
	if s := at.Sharing(reading.Instant{}); s.Self == any(l.guard) {
		l.at, l.reads, l.quiet = at, s.Reads, s.Quiet
	}
}

// bare is what the zero Pipeline runs: a plain call.
var bare = plan{fallbackTimeout: defaultFallbackTimeout}

// wantsTook asks the guards anew for each call: an Update may have switched it on.
func (p *plan) wantsTook() bool {
	for _, t := range p.timed {
		if t.WantsTook() {
			return true
		}
	}
	return false
}
