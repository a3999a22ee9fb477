// Package byhand is the composition that a careful programmer writes without a library of pipelines: gobreaker, x/time/rate,
// x/sync/semaphore, a loop and context.WithTimeout. It does what the others in the comparison do, and no more.
package byhand

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// ErrLimited and ErrFull are refusals; gobreaker has its own.
var (
	ErrLimited = errors.New("too many per second")
	ErrFull    = errors.New("no slot")
)

// Call guards calls to one downstream. A nil part is left out. It is safe for concurrent use.
type Call struct {
	Breaker  *gobreaker.CircuitBreaker[int]
	Limiter  *rate.Limiter
	Slots    *semaphore.Weighted
	Limit    time.Duration // of an attempt; 0 = none
	Attempts int           // 0 = 1
	Base     time.Duration // the first backoff is drawn from [0, Base); 0 = no pause
	Steady   bool          // every backoff is Base itself
}

// Do runs fn until it succeeds, and at most Attempts times.
func (c *Call) Do(ctx context.Context, fn func(context.Context) (int, error)) (int, error) {
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		v, err := c.guarded(ctx, fn)
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests), errors.Is(err, ErrLimited), errors.Is(err, ErrFull):
			return 0, err // more attempts would be refused too
		case ctx.Err() != nil:
			return 0, errors.Join(ctx.Err(), err)
		case attempt >= c.Attempts:
			return 0, fmt.Errorf("after %d attempts: %w", attempt, err)
		}
		if err := c.pause(ctx, attempt, err); err != nil {
			return 0, err
		}
	}
}

func (c *Call) guarded(ctx context.Context, fn func(context.Context) (int, error)) (int, error) {
	if c.Breaker == nil {
		return c.once(ctx, fn)
	}
	return c.Breaker.Execute(func() (int, error) { return c.once(ctx, fn) })
}

// once is one attempt, with what an attempt holds.
func (c *Call) once(ctx context.Context, fn func(context.Context) (int, error)) (int, error) {
	if c.Limiter != nil && !c.Limiter.Allow() {
		return 0, ErrLimited
	}
	if c.Slots != nil {
		if !c.Slots.TryAcquire(1) {
			return 0, ErrFull
		}
		defer c.Slots.Release(1)
	}
	if c.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Limit)
		defer cancel()
	}
	return fn(ctx)
}

// pause is full jitter, and none that would outlast the deadline.
func (c *Call) pause(ctx context.Context, attempt int, last error) error {
	if c.Base <= 0 {
		return nil
	}
	d := c.Base
	if !c.Steady {
		d = rand.N(c.Base << (attempt - 1))
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return errors.Join(context.DeadlineExceeded, last)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), last)
	}
}

// Excluded is for gobreaker.Settings.IsExcluded: a refusal from further in, and a caller who went away, say nothing of the
// other side.
func Excluded(err error) bool {
	return err != nil && (errors.Is(err, ErrLimited) || errors.Is(err, ErrFull) || errors.Is(err, context.Canceled))
}
