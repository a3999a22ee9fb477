package budget

import (
	"context"
	"time"

	internalclock "github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/jonboulle/clockwork"
)

// Left is the time until ctx's deadline on clock (nil = real time), never negative; ok is false without a deadline.
// That ctx has been cancelled does not matter here.
func Left(ctx context.Context, clock clockwork.Clock) (left time.Duration, ok bool) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0, false
	}
	if internalclock.IsReal(clock) {
		return max(0, time.Until(deadline)), true
	}
	return max(0, clock.Until(deadline)), true
}

// Fits says whether, after waiting wait, at least reserve and more than 0 is left before ctx's deadline. Everything fits
// without a deadline; nothing fits once it has passed. Negative arguments count as 0; sums saturate.
func Fits(ctx context.Context, clock clockwork.Clock, wait, reserve time.Duration) bool {
	left, ok := Left(ctx, clock)
	if !ok {
		return true
	}
	rest := left - max(0, wait) // a difference of two that are not negative cannot overflow, the sum could
	return rest > 0 && rest >= reserve
}

// Sleep sleeps d on clock (nil = real time). When ctx ends first it returns at once with an error that matches ctx.Err() and
// context.Cause(ctx), and the timer is stopped. d <= 0 returns at once, with ctx's error if ctx is done.
// A ctx that is done already starts no timer, and one that ended at the same instant as the sleep wins.
func Sleep(ctx context.Context, clock clockwork.Clock, d time.Duration) error {
	if err := ended.Err(ctx); err != nil || d <= 0 {
		return err
	}
	if internalclock.IsReal(clock) {
		t := time.NewTimer(d)
		defer t.Stop()
		return await(ctx, t.C)
	}
	t := clock.NewTimer(d)
	defer t.Stop()
	return await(ctx, t.Chan())
}

func await(ctx context.Context, fired <-chan time.Time) error {
	select {
	case <-ctx.Done():
	case <-fired:
	}
	return ended.Err(ctx)
}

// WithReserve is ctx with its deadline d earlier: an inner budget that keeps d for the caller. Without a
// deadline, or with d <= 0, the deadline stays; with d at or above the time left it is expired already. Always call cancel.
// It runs on real time, as package context does.
func WithReserve(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-d))
}
