package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/cachepolicy"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/fallback"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
)

// failsafeGo gives every execution the caller's context, and fn the execution's.
func failsafeGo() subject {
	run := func(policies ...failsafe.Policy[any]) call {
		ex := failsafe.With(policies...)
		return func(ctx context.Context, fn func(context.Context) error) error {
			return ex.WithContext(ctx).RunWithExecution(func(e failsafe.Execution[any]) error { return fn(e.Context()) })
		}
	}
	circuit := func() failsafe.Policy[any] {
		return circuitbreaker.NewBuilder[any]().WithFailureThreshold(3).WithSuccessThreshold(1).WithDelay(openFor).Build()
	}
	again := func(pause time.Duration) failsafe.Policy[any] {
		return retrypolicy.NewBuilder[any]().WithMaxAttempts(3).WithDelay(pause).Build()
	}
	return subject{
		name:     "failsafe-go",
		bulkhead: func(n int) call { return run(bulkhead.New[any](uint(n))) },
		waiting: func(n int, wait time.Duration) call {
			return run(bulkhead.NewBuilder[any](uint(n)).WithMaxWaitTime(wait).Build())
		},
		breaker:      func() call { return run(circuit()) },
		retry:        func(pause time.Duration) call { return run(again(pause)) },
		timeout:      func(limit time.Duration) call { return run(timeout.New[any](limit)) },
		timedOut:     timeout.ErrExceeded,
		retryBreaker: func(pause time.Duration) call { return run(again(pause), circuit()) },
		retrySlots:   func(pause time.Duration, n int) call { return run(again(pause), bulkhead.New[any](uint(n))) },
		timedSlots: func(limit time.Duration, n int) call {
			return run(bulkhead.New[any](uint(n)), timeout.New[any](limit))
		},
		storm:  func() call { return run(retrypolicy.NewWithDefaults[any]()) },
		budget: func() call { return run(retrypolicy.NewBuilder[any]().WithBudget(budget.New()).Build()) },
		delays: func(first, most time.Duration) (all []time.Duration) {
			p := retrypolicy.NewBuilder[any]().WithMaxAttempts(20).WithBackoff(first, most).WithJitterFactor(0.5).
				OnRetryScheduled(func(e failsafe.ExecutionScheduledEvent[any]) { all = append(all, e.Delay) }).Build()
			_ = failsafe.With[any](p).Run(func() error { return errDown })
			return all
		},
		limiter: func(every time.Duration) limiter {
			l := ratelimiter.NewBursty[any](1, every)
			return limiter{l.TryAcquirePermit, l.AcquirePermit}
		},
		client: func(server http.RoundTripper, attempts int, pause time.Duration) func(*http.Request) (*http.Response, error) {
			p := failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(attempts).WithDelay(pause).Build()
			return (&http.Client{Transport: failsafehttp.NewRoundTripper(server, p)}).Do
		},
		features: failsafeFeatures(),
	}
}

// store is the cache that a user brings.
type store map[string]int

func (s store) Get(key string) (int, bool) { v, ok := s[key]; return v, ok }
func (s store) Set(key string, v int)      { s[key] = v }

func failsafeFeatures() map[string]func() bool {
	return map[string]func() bool{
		fallbackFeature: func() bool {
			v, err := failsafe.With[int](fallback.NewWithResult(7)).Get(func() (int, error) { return 0, errDown })
			return v == 7 && err == nil
		},
		resultFeature: func() bool {
			n := 0
			v, err := failsafe.With[int](retrypolicy.NewBuilder[int]().HandleResult(1).Build()).Get(func() (int, error) { n++; return n, nil })
			return v == 2 && err == nil
		},
		hedgeFeature: func() bool {
			var n atomic.Int32
			v, err := failsafe.With[int](hedgepolicy.NewWithDelay[int](20 * time.Millisecond)).GetWithExecution(func(e failsafe.Execution[int]) (int, error) {
				if n.Add(1) == 1 {
					<-e.Canceled() // the first hangs
				}
				return 7, nil
			})
			return v == 7 && err == nil
		},
		cacheFeature: func() bool {
			n := 0
			ex := failsafe.With[int](cachepolicy.NewBuilder[int](store{}).WithKey("key").Build())
			count := func() (int, error) { n++; return n, nil }
			first, _ := ex.Get(count)
			second, _ := ex.Get(count)
			return first == 1 && second == 1 && n == 1
		},
		adaptiveFeature: func() bool {
			l := adaptivelimiter.NewBuilder[int]().WithLimits(1, 50, 10).Build()
			before := l.Limit()
			for range 2000 {
				p, ok := l.TryAcquirePermit()
				if ok {
					p.Record()
				}
			}
			return l.Limit() != before || until(openFor, func() bool { return l.Limit() != before })
		},
		orderFeature: func() bool {
			// A bulkhead around the retry keeps its slot during backoffs; one inside does not.
			var held [2]bool
			for i, inside := range []bool{false, true} {
				slot := bulkhead.New[int](1)
				policies := []failsafe.Policy[int]{slot, retrypolicy.NewBuilder[int]().WithMaxAttempts(2).
					OnRetryScheduled(func(failsafe.ExecutionScheduledEvent[int]) { held[i] = !slot.TryAcquirePermit() }).Build()}
				if inside {
					policies[0], policies[1] = policies[1], policies[0]
				}
				_, _ = failsafe.With(policies...).Get(func() (int, error) { return 0, errDown })
			}
			return held[0] && !held[1]
		},
	}
}
