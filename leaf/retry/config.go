package retry

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/follow"
	"github.com/jonboulle/clockwork"
)

// Unlimited is the MaxAttempts that only time bounds: a deadline of ctx or MaxElapsed must exist when the loop begins
// (that ctx can be cancelled is not enough), else nothing is sent.
const Unlimited = -1

// Config of a [Retry]. Zero fields mean the default.
type Config struct {
	// Name is named in errors and events; "" is allowed.
	Name string
	// MaxAttempts counts the first call; 0 = 3; Unlimited; else 1 to 64.
	MaxAttempts int
	// Backoff is the ladder of delays; nil = Exponential(100 ms). A retry after a guard's refusal is a rung too.
	Backoff Backoff
	// Jitter spreads each delay; the zero value is Full.
	Jitter Jitter
	// MaxDelay caps each delay, after the jitter; 0 = 20 s; else positive. The ladder itself is never jittered.
	// One that is not the default and below Backoff's first step is contradictory, and an error; the default caps it.
	MaxDelay time.Duration
	// RetryIf says which failures are retried; nil = all that are not excluded by rule. Pure.
	RetryIf func(err error) bool
	// StopIf says which are not, and beats RetryIf; nil = none. Pure. Neither is asked about the caller's own context error.
	StopIf func(err error) bool
	// RetryAfter finds the wait that the other side asked for; nil = the outermost RetryAfter() (time.Duration, bool) in the
	// error's tree, errors with an UpperBound() bool that is true left out. A wait <= 0 is none. Pure.
	RetryAfter func(err error) (time.Duration, bool)
	// MaxRetryAfter is the longest such wait that is slept; 0 = MaxDelay; else positive, also above MaxDelay.
	MaxRetryAfter time.Duration
	// MaxElapsed bounds the whole loop from its beginning: no wait is started that would end after it; 0 = off; else positive.
	// It cuts no attempt that is running: a timeout does that.
	MaxElapsed time.Duration
	// Reserve is the time that must be left before ctx's deadline when a delay has been slept; 0 = any positive rest; else
	// positive. Without a deadline it asks for nothing.
	Reserve time.Duration
	// Budget limits retries, shared with whoever has the same; nil = a private budget.NewRatio with its defaults on this Clock.
	Budget budget.Retry
	// NoBudget opts out of any budget; together with a Budget it is an error.
	NoBudget bool
	// ReturnLast returns the last failure unwrapped instead of an [*Error], once fn has run.
	ReturnLast bool
	// RetryNested also retries another loop's *Error: retries of retries multiply.
	RetryNested bool
	// Strict: MaxAttempts other than 1 needs an explicit Budget (NoBudget is none) and RetryIf at New, and a declared
	// [Safety] at the call, refused before anything is sent.
	Strict bool
	// OnRetry is told each retry that is about to be slept for, after its token was reserved; nil = nobody. It runs on the
	// call's goroutine, outside every lock. When it panics, the token goes back and the panic goes on.
	OnRetry func(ctx context.Context, s Scheduled)
	// Clock; nil = real time.
	Clock clockwork.Clock
	// Rand is uniform in [0, 1); nil = math/rand/v2. Not called where there is nothing to spread; at most once per retry.
	// What is outside the interval counts as its nearest end, NaN as 0. It must be safe for concurrent use.
	Rand func() float64

	told following
}

// following is what Config tells otherwise than it was written, since it depends on other fields: MaxRetryAfter on MaxDelay, the
// private budget on NoBudget.
type following struct {
	maxRetryAfter follow.Field[time.Duration]
	budget        follow.Field[budget.Retry]
}

// written is cfg as its author wrote it: what was told and left alone depends on the other fields again.
func (cfg Config) written() Config {
	cfg.MaxRetryAfter = cfg.told.maxRetryAfter.Written(cfg.MaxRetryAfter)
	cfg.Budget = cfg.told.budget.Written(cfg.Budget)
	cfg.told = following{}
	return cfg
}

// Scheduled is what OnRetry is told.
type Scheduled struct {
	Retry int           // from 1
	Delay time.Duration // about to be slept
	Err   error         // the failure that is retried: fn's, or a guard's refusal
}
