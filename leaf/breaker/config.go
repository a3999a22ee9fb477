package breaker

import (
	"context"
	"errors"
	"time"

	"github.com/jonboulle/clockwork"
)

const (
	// Off switches off a rule whose zero value means a default: FailureRate, Consecutive, BlameAfter;
	// it is also allowed where off is the default: FailureCount, SlowCall.
	Off = -1
	// NoLease is the ProbeLease without a limit: half-open admits everyone, and Probes has no effect.
	NoLease = -1
)

// Config of a [Breaker]. Zero fields mean the default. At least one of FailureRate, FailureCount, Consecutive and SlowCall must
// be on: a breaker that nothing trips is an error.
type Config struct {
	// Name is named in errors and changes; "" is allowed.
	Name string
	// Window is what is counted; the zero Window is Time(10 s).
	Window Window
	// MinCalls is how many results the window must hold before a rate is judged; 0 = 20; else from 1.
	// Above a count window it is clamped to its size.
	MinCalls int
	// FailureRate trips when failures/calls reaches it, compared exactly; 0 = 0.5; Off; else in (0, 1].
	// Exactly: 29 of 100 reaches 0.29, and k of n reaches float64(k)/float64(n), for every n up to 2^26.
	FailureRate float64
	// FailureCount trips when so many failures are in the window, whatever MinCalls; 0 or Off = off; else from 1.
	// Above a count window it is an error.
	FailureCount int
	// Consecutive trips when so many failures came in a row while the window holds fewer than MinCalls; 0 = 5; Off; else from 1.
	// A failure that has left the window is no longer part of the row, and every recorded result that is no failure ends it.
	// It is the rule for the first calls and for quiet hours: once MinCalls results are in, FailureRate judges. From
	// MinCalls on it can never be reached, which is an error where it is set and FailureRate is Off.
	Consecutive int
	// SlowCall is the time from which a call is slow; 0 or Off = off; else positive.
	SlowCall time.Duration
	// SlowRate trips when slow/calls reaches it, from MinCalls on; 0 = 0.5; else in (0, 1]. Without SlowCall it must be 0.
	SlowRate float64
	// OpenFor is the first open time; 0 = 5 s; else positive. A call at exactly trip + open time may probe.
	OpenFor time.Duration
	// OpenGrowth multiplies the open time per re-opening; 0 = 1; else from 1, finite. Closing begins anew with OpenFor.
	OpenGrowth float64
	// MaxOpenFor caps the grown open time; 0 = max(5 min, OpenFor); else at least OpenFor.
	MaxOpenFor time.Duration
	// OpenJitter draws the open time from [half of it, it).
	OpenJitter bool
	// Probes is how many probes may be out at once while half-open; 0 = 1; else from 1.
	Probes int
	// ProbeSuccesses is how many probes must succeed to close; 0 = 1; else from 1. One failure re-opens.
	// A slow success is a success.
	ProbeSuccesses int
	// ProbeLease is how long a probe keeps its slot; 0 = the open time (grown, before jitter); NoLease; else positive.
	// After it the slot is free for another probe; a late result still counts while the same half-open episode lasts.
	ProbeLease time.Duration
	// IsFailure judges what a callback returned, nil included; nil = err != nil. Pure; a panic in it is a failure.
	IsFailure func(err error) bool
	// Ignore says which errors are neither failure nor success: nothing is recorded, a probe's slot goes back. It is asked before
	// IsFailure, of what a callback returned that is not nil; nil = none. Pure; a panic in it is a failure.
	Ignore func(err error) bool
	// BlameAfter is how long the callback must have run for the caller's deadline to count as a failure;
	// 0 = half of leaf.Outcome.Given, at most 100 ms (100 ms where Given is unknown); Off = never; else positive.
	BlameAfter time.Duration
	// OnChange is told each committed transition, in commit order, one at a time, outside every lock; nil = nobody.
	// It may use the breaker: what it changes is told after it has returned. Its panic propagates from the Acquire, Settle
	// or control call that told it (with many goroutines not always the one that made the change), after everything else
	// was told.
	OnChange func(Change)
	// Clock; nil = real time.
	Clock clockwork.Clock
	// Rand is uniform in [0, 1), for OpenJitter; nil = math/rand/v2. It is called under the breaker's lock, once per
	// opening, and must not use the breaker.
	Rand func() float64

	told following
}

// IgnoreContext wraps an IsFailure (nil = err != nil) so that context.Canceled and context.DeadlineExceeded, wrapped or
// not, are no failures: for those who want expiry never to count. An attempt timeout of the pipeline's own still is one:
// it is judged before IsFailure is asked.
func IgnoreContext(isFailure func(error) bool) func(error) bool {
	return func(err error) bool {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return false
		}
		if isFailure == nil {
			return err != nil
		}
		return isFailure(err)
	}
}
