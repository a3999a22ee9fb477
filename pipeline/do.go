package pipeline

import (
	"context"
	"math"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/limit"
	"github.com/fairlead/fairlead/leaf/timeout"
)

// Do runs fn through p. A failed Do returns the zero T. The success path allocates nothing without timeouts and once per
// untouched timeout; fn does not escape.
//
// Its errors. fn never ran: the refusing guard's own (rejection.Is), as OnRejected maps it; the context's, which matches
// ctx.Err() and context.Cause(ctx); a [*timeout.Error] of the total timeout; or what the retry asks for before it sends
// anything: a [*retry.Error] with reason UnsafeReplay, or an error that says that nothing bounds Unlimited attempts.
// fn ran: its own error, unchanged, without a retry or where the failure is never retried; a [*timeout.Error], where a limit
// of the pipeline's cut it; a [*retry.Error], with the last failure, for everything else that stops the loop (with
// retry.Config.ReturnLast the failure itself); a [*RanError] around a refusal that fn itself returned.
//
// A panic goes on to the caller, after the guards were settled. A nil p panics at once; a nil fn when it would run, which
// the guards take as a panic of fn.
func Do[T any](ctx context.Context, p *Pipeline, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	return run(ctx, p, &call{}, fn, opts) // so short that callers have it inlined: one return less for the processor to predict
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

// Run is Do for a callback without a result. It may be called on the zero Pipeline, not on a nil one.
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
// It is told the call's error, and may decline by returning it. It does not run when fn panics. A nil fallback makes it Do.
// It runs after the call's last event and leaves none of its own: call_finished tells how the call went without it.
//
// A call that stopped before a wait which did not fit (retry_delay_exceeds_deadline, retry_after_exceeds_deadline) has not
// reached its deadline: fallback gets ctx, with whatever is left of it.
func DoOr[T any](ctx context.Context, p *Pipeline, fn func(context.Context) (T, error), fallback func(context.Context, error) (T, error), opts ...Option) (T, error) {
	var c call
	v, err := run(ctx, p, &c, fn, opts)
	if err == nil || fallback == nil || c.disposition == Cancelled || ctx.Err() == context.Canceled {
		return v, err
	}
	if c.disposition == Expired || ctx.Err() != nil || c.overdue() {
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
	if parent.Err() != nil || c.overdue() {
		parent = context.WithoutCancel(parent)
	}
	d := c.plan.fallbackTimeout
	at := clock.Add(c.plan.clock.Now(), d)
	return limit.New(parent, c.plan.clock, at, &limit.Spec{Name: "fallback of " + c.plan.name, Limit: d, NewCause: newTimeoutCause})
}

func newTimeoutCause(name string, limit time.Duration) error {
	return &timeout.Error{Name: name, Limit: limit}
}

// overdue says that the caller's deadline has passed; its own timer may be late.
func (c *call) overdue() bool {
	return c.deadline != math.MaxInt64 && c.deadline <= c.plan.clock.Now()
}
