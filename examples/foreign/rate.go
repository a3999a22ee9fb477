package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/fairlead/fairlead/leaf"
)

var errLimited = errors.New("too many per second")

// Rate is golang.org/x/time/rate as a guard: a rate limit that refuses at once.
type Rate struct{ *rate.Limiter }

func (r *Rate) Acquire(ctx context.Context) (leaf.Permit, error) {
	if ctx.Err() == nil && r.Allow() {
		return leaf.NewPermit(r, 0), nil
	}
	missing := (1 - r.Tokens()) / float64(r.Limit())
	return leaf.Permit{}, refuse(ctx, errLimited, max(1, time.Duration(missing*float64(time.Second))))
}

// Settle gives back the token of a call that did not run. (To take -1 is how: a Reservation's Cancel gives back less when
// others came after it.)
func (r *Rate) Settle(_ context.Context, _ uint64, o leaf.Outcome) error {
	if o.Verdict == leaf.NotRun {
		r.AllowN(time.Now(), -1)
	}
	return nil
}
