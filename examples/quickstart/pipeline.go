package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// patience is how long a user waits, with a pipeline or without.
const patience = time.Second

// newBilling is every layer there is. Read it from the top: that is the order in which a call meets them.
//
// Copy it; then change the numbers. Those of the breaker are short here because the phases of this demonstration are:
// its default is to stay open for 5 s.
func newBilling(onChange func(breaker.Change)) *pipeline.Pipeline {
	return pipeline.For("billing").

		// The whole call: attempts, backoffs and waits together.
		Timeout(timeout.MustNew(timeout.Config{Name: "billing", Limit: patience})).

		// Around everything below: each attempt asks each of the guards again.
		Retry(retry.MustNew(retry.Config{
			MaxAttempts: 3,
			Backoff:     retry.Exponential(20 * time.Millisecond), // with full jitter
			StopIf:      ourFault,                                 // a 404 will be a 404 again
		})).

		// The server said "Retry-After: 1"? Then nobody asks it for 1 s.
		Cooldown(cooldown.MustNew(cooldown.Config{Name: "billing"})).

		// Half of the last 40 calls failed? Then it is left alone for 400 ms, and then asked by one call.
		Breaker(breaker.MustNew(breaker.Config{
			Name:     "billing",
			Window:   breaker.Count(40),
			OpenFor:  400 * time.Millisecond,
			OnChange: onChange,
		})).

		// What we agreed on with those who run the server.
		RateLimit(ratelimit.MustNew(ratelimit.Config{Name: "billing", Rate: 225, Per: time.Second, Burst: 25})).

		// What it can do at once; behind these 12 a call waits for 20 ms, then it is told that it is too much.
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "billing", MaxConcurrent: 12, MaxWait: 20 * time.Millisecond})).

		// Innermost: one attempt, from when its work starts.
		AttemptTimeout(timeout.MustNew(timeout.Config{Name: "billing attempt", Limit: 300 * time.Millisecond})).

		// Outermost: nothing was sent, and whoever called learns it in the words of this program.
		OnRejected(func(_ context.Context, err error) error { return &BillingUnavailable{Cause: err} }).
		MustBuild()
}

// BillingUnavailable is what the rest of the program knows of all this: there is no billing just now, and nothing was
// charged. When to come back is in what it wraps; rejection.RetryAfter finds it.
type BillingUnavailable struct{ Cause error }

func (e *BillingUnavailable) Error() string {
	return fmt.Sprintf("billing is unavailable: %v", e.Cause)
}
func (e *BillingUnavailable) Unwrap() error { return e.Cause }

// ourFault says that repeating it cannot help: a 4xx, unless it is about time or load.
func ourFault(err error) bool {
	answer, ok := errors.AsType[*StatusError](err)
	return ok && answer.Code < 500 && answer.Code != 408 && answer.Code != 425 && answer.Code != 429
}
