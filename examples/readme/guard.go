package main

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

// slots is a bulkhead out of a channel: make(slots, 8).
type slots chan struct{}

func (s slots) Acquire(ctx context.Context) (leaf.Permit, error) {
	if err := ctx.Err(); err != nil { // the caller's own error, no refusal: it has to match both
		return leaf.Permit{}, errors.Join(err, context.Cause(ctx))
	}
	select {
	case s <- struct{}{}:
		return leaf.NewPermit(s, 0), nil
	default:
		return leaf.Permit{}, errTaken{}
	}
}

func (s slots) Settle(context.Context, uint64, leaf.Outcome) error { <-s; return nil }

type errTaken struct{} // a refusal is an error with these two methods

func (errTaken) Error() string                     { return "all slots are taken" }
func (errTaken) Rejected() bool                    { return true }
func (errTaken) RetryAfter() (time.Duration, bool) { return 0, false }
