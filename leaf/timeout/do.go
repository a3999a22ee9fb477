package timeout

import (
	"context"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/limit"
)

// Do runs fn with the deadline min(ctx's, now+Limit). When fn fails after this limit fired while ctx lived, the error is
// an [*Error] around fn's; an *Error of an inner limit is replaced, never wrapped twice. When ctx ended first or at the same
// instant, fn's error comes back unchanged. A success is never discarded, however late. A ctx that is done runs nothing:
// the error then matches ctx.Err() and context.Cause(ctx).
//
// fn runs on the caller's goroutine; a panic and runtime.Goexit end its context and go on. On an error the result is the
// zero T. Where fn never asks its context for Done, a success costs one allocation.
func Do[T any](ctx context.Context, t *Timeout, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	if err := ended.Err(ctx); err != nil {
		return zero, err
	}
	spec := &t.plan.Load().spec
	c := limit.New(ctx, t.clk, clock.Add(t.clk.Now(), spec.Limit), spec)
	defer c.End()
	v, err := fn(c)
	if err == nil {
		return v, nil
	}
	if fired, _ := c.Ended(t.clk.Now()); fired {
		err = around(spec.Name, spec.Limit, err)
	}
	return zero, err
}

// Keep takes over the cancelling: ctx (or a context it derives from) that a [Do] or a pipeline made stays alive after
// the callback returned, until its deadline or until release is called; so do the ones around it, and the end of the
// caller's own context ends them as ever. For results that are read later, as response bodies: release when they are
// closed. A kept context holds its timer. release may be called any number of times, from any goroutine.
// For any other context Keep does nothing, and neither does release.
func Keep(ctx context.Context) (release func()) { return limit.Keep(ctx) }
