package pipeline

import (
	"context"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/limit"
)

// Do runs fn through p. A failed Do returns the zero T. The success path allocates nothing without timeouts and once per
// untouched timeout; fn does not escape.
func Do[T any](ctx context.Context, p *Pipeline, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	var c call
	return run(ctx, p, &c, fn, opts)
}

// run is the pipeline. begin: start check, total timeout, breaker outside the retry. admit: cooldown, breaker, rate limit,
// extra guards, bulkhead, in this order. enter: attempt timeout. leave: settle in reverse order. again: judge, peek, retry
// budget, backoff. end: the outer breaker, and what the caller gets.
func run[T any](ctx context.Context, p *Pipeline, c *call, fn func(context.Context) (T, error), opts []Option) (T, error) {
	var a admission // what the attempt under way holds
	defer c.unwind(&a)
	for ok := c.begin(ctx, p.current(), opts); ok; ok = c.again() {
		if !c.admit(&a) {
			continue
		}
		v, err := fn(c.enter())
		if c.leave(&a, err) {
			c.end()
			return v, nil
		}
	}
	var zero T
	return zero, c.end()
}

// Run is Do for a callback without a result.
func (p *Pipeline) Run(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	_, err := Do(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }, opts...)
	return err
}

// Wrap is fn behind p: a guarded func of the same signature.
func Wrap[T any](p *Pipeline, fn func(context.Context) (T, error), opts ...Option) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) { return Do(ctx, p, fn, opts...) }
}

// DoDetailed is Do that also reports how the call went.
func DoDetailed[T any](ctx context.Context, p *Pipeline, fn func(context.Context) (T, error), opts ...Option) (T, Report, error) {
	var r Report
	c := call{report: &r}
	v, err := run(ctx, p, &c, fn, opts)
	return v, r, err
}

// DoOr is Do with a plan B. fallback is skipped when the caller cancelled; called when the deadline or the total timeout passed,
// with a context that lives again for FallbackTimeout and keeps ctx's values; and for every other error, with ctx.
// It is told the call's error, and may decline by returning it. It does not run when fn panics.
func DoOr[T any](ctx context.Context, p *Pipeline, fn func(context.Context) (T, error), fallback func(context.Context, error) (T, error), opts ...Option) (T, error) {
	var c call
	v, err := run(ctx, p, &c, fn, opts)
	if err == nil || fallback == nil || c.disposition == Cancelled || ctx.Err() == context.Canceled {
		return v, err
	}
	if c.disposition == Expired || ctx.Err() != nil {
		revived := c.revive()
		defer revived.End()
		ctx = revived
	}
	v, err = fallback(ctx, err)
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// revive is a context for plan B when the call's time is over: the caller's values, FallbackTimeout to live, and the
// caller's cancellation where the caller still lives (the pipeline's own total timeout had fired).
func (c *call) revive() *limit.Ctx {
	parent := c.caller
	if parent.Err() != nil {
		parent = context.WithoutCancel(parent)
	}
	d := c.plan.fallbackTimeout
	at := clock.Add(c.plan.clock.Now(), d)
	return limit.New(parent, c.plan.clock, at, c.plan.name, d, newTimeoutCause)
}
