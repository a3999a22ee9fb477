package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

func fairlead() subject {
	run := func(b pipeline.Builder) call {
		p := b.MustBuild()
		return func(ctx context.Context, fn func(context.Context) error) error { return p.Run(ctx, fn) }
	}
	base := pipeline.For("probe")
	slots := func(n int, wait time.Duration) *bulkhead.Bulkhead {
		return bulkhead.MustNew(bulkhead.Config{MaxConcurrent: n, MaxWait: wait})
	}
	circuit := func() *breaker.Breaker {
		return breaker.MustNew(breaker.Config{Consecutive: 3, OpenFor: openFor})
	}
	again := func(pause time.Duration) *retry.Retry {
		return retry.MustNew(retry.Config{MaxAttempts: 3, Backoff: retry.Constant(pause), Jitter: retry.None})
	}
	within := func(limit time.Duration) *timeout.Timeout { return timeout.MustNew(timeout.Config{Limit: limit}) }
	return subject{
		name:     ours,
		bulkhead: func(n int) call { return run(base.Bulkhead(slots(n, 0))) },
		waiting:  func(n int, wait time.Duration) call { return run(base.Bulkhead(slots(n, wait))) },
		breaker:  func() call { return run(base.Breaker(circuit())) },
		retry:    func(pause time.Duration) call { return run(base.Retry(again(pause))) },
		timeout:  func(limit time.Duration) call { return run(base.AttemptTimeout(within(limit))) },
		timedOut: timeout.ErrTimeout,
		retryBreaker: func(pause time.Duration) call {
			return run(base.Retry(again(pause)).Breaker(circuit()))
		},
		retrySlots: func(pause time.Duration, n int) call {
			return run(base.Retry(again(pause)).Bulkhead(slots(n, 0)))
		},
		timedSlots: func(limit time.Duration, n int) call {
			return run(base.Bulkhead(slots(n, 0)).AttemptTimeout(within(limit)))
		},
		storm: func() call {
			return run(base.Retry(retry.MustNew(retry.Config{Backoff: retry.Immediate})))
		},
		budget: func() call { // the default's floor, for a small process
			few := budget.MustNewRatio(budget.RatioConfig{MinPerSecond: 1})
			return run(base.Retry(retry.MustNew(retry.Config{Backoff: retry.Immediate, Budget: few})))
		},
		delays:  fairleadDelays,
		limiter: fairleadLimiter,
		clocked: fairleadClocked,
		client: func(server http.RoundTripper, attempts int, pause time.Duration) func(*http.Request) (*http.Response, error) {
			r := retry.MustNew(retry.Config{MaxAttempts: attempts, Backoff: retry.Constant(pause), Jitter: retry.None})
			return (&http.Client{Transport: httpx.NewTransport(base.Retry(r).MustBuild(), server)}).Do
		},
		features: fairleadFeatures(),
	}
}

// detached is the same library's form for callbacks that ignore their context.
func detached() subject {
	do := func(b pipeline.Builder) call {
		p := b.MustBuild()
		return func(ctx context.Context, fn func(context.Context) error) error {
			_, err := pipeline.DoDetached(ctx, p, func(ctx context.Context) (int, error) { return 0, fn(ctx) }, pipeline.Detached[int]{})
			return err
		}
	}
	within := func(limit time.Duration) pipeline.Builder {
		return pipeline.For("probe").Timeout(timeout.MustNew(timeout.Config{Limit: limit}))
	}
	return subject{
		name:     ours + ", DoDetached",
		timeout:  func(limit time.Duration) call { return do(within(limit)) },
		timedOut: timeout.ErrTimeout,
		timedSlots: func(limit time.Duration, n int) call {
			return do(within(limit).Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: n})))
		},
	}
}

func fairleadDelays(first, most time.Duration) (all []time.Duration) {
	r := retry.MustNew(retry.Config{MaxAttempts: 20, Backoff: retry.Exponential(first), Jitter: retry.Proportional(0.5), MaxDelay: most, NoBudget: true,
		OnRetry: func(_ context.Context, s retry.Scheduled) { all = append(all, s.Delay) }})
	_, _ = retry.Do(background, r, func(context.Context) (int, error) { return 0, errDown })
	return all
}

func fairleadLimiter(every time.Duration) limiter {
	l := ratelimit.MustNew(ratelimit.Config{Rate: 1, Per: every, Burst: 1, MaxWait: time.Hour})
	try := func() bool {
		p, err := l.TryAcquire(background)
		return err == nil && p.Settle(background, leaf.Outcome{}) == nil
	}
	return limiter{try, func(ctx context.Context) error { return l.Wait(ctx, 1) }}
}

// stepped is a clock that is set.
type stepped struct {
	clockwork.Clock
	mu  sync.Mutex
	now time.Time
}

func (c *stepped) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}
func (c *stepped) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *stepped) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }
func (c *stepped) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func fairleadClocked() func(time.Time, int) bool {
	clock := &stepped{Clock: clockwork.NewRealClock(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	l := ratelimit.MustNew(ratelimit.Config{Rate: 1, Burst: 100, Clock: clock})
	return func(now time.Time, n int) bool {
		clock.set(now)
		return !errors.Is(l.AllowN(n), ratelimit.ErrLimited)
	}
}
