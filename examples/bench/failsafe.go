package main

import (
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	fsbulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	fsbreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	fslimiter "github.com/failsafe-go/failsafe-go/ratelimiter"
	fsretry "github.com/failsafe-go/failsafe-go/retrypolicy"
	fstimeout "github.com/failsafe-go/failsafe-go/timeout"
)

// failsafeBreaker counts no refusal of what is further in as a failure, as nobody else's does.
func failsafeBreaker(rate bool) fsbreaker.CircuitBreaker[int] {
	b := fsbreaker.NewBuilder[int]().WithDelay(patience).HandleIf(func(_ int, err error) bool {
		return err != nil && !errors.Is(err, fsbulkhead.ErrFull) && !errors.Is(err, fslimiter.ErrExceeded)
	})
	if rate {
		return b.WithFailureRateThreshold(failureRate, minCalls, window).Build()
	}
	return b.WithFailureThreshold(row).Build()
}

func failsafeLimiter(spent bool) fslimiter.RateLimiter[int] {
	if spent {
		return fslimiter.NewBursty[int](1, patience)
	}
	return fslimiter.NewBursty[int](burst, time.Second)
}

func failsafeRetry() fsretry.RetryPolicy[int] {
	return fsretry.NewBuilder[int]().WithMaxAttempts(attempts).
		AbortOnErrors(fsbreaker.ErrOpen, fsbulkhead.ErrFull, fslimiter.ErrExceeded).Build()
}

func failsafeExecutor(s shape) (failsafe.Executor[int], fsbulkhead.Bulkhead[int]) {
	room := fsbulkhead.New[int](uint(s.slots()))
	policies := []failsafe.Policy[int]{failsafeRetry(), failsafeBreaker(s.rate), failsafeLimiter(s.spent), room}
	if s.attempt > 0 {
		policies = append(policies, fstimeout.New[int](s.attempt))
	}
	return failsafe.With(policies...), room
}

// failsafeFull builds the executor once. fn gets an execution only where it needs its context, since that costs a copy; the
// caller's context is given only where the others give one, since that costs another.
func failsafeFull(s shape, asks bool) contender {
	setup := "failsafe.With, built once: retrypolicy (3 attempts, no delay, AbortOnErrors of the three refusals), circuitbreaker (WithFailureThreshold(100); refusals handled as no failure), " +
		"ratelimiter.NewBursty (1e9 per second), bulkhead (1000); Get, or GetWithExecution where fn asks for Done"
	if s.rate {
		setup = "the same with WithFailureRateThreshold(0.9, 20, 10 s)"
	} else if s.request {
		setup = "the same; WithContext(ctx).Get for each call"
	}
	return contender{name: "failsafe-go", setup: setup, begin: func() work {
		ex, room := failsafeExecutor(s)
		ctx, cancel := s.context()
		w := work{refusal: s.refusal(fsbreaker.ErrOpen, fslimiter.ErrExceeded, fsbulkhead.ErrFull), end: cancel}
		if s.full {
			if !room.TryAcquirePermit() {
				panic("no slot")
			}
			w.end = func() { room.ReleasePermit(); cancel() }
		}
		switch {
		case asks:
			w.run = func(n int, j *job) {
				for range n {
					j.ended(ex.GetWithExecution(func(e failsafe.Execution[int]) (int, error) { return j.fn(e.Context()) }))
				}
			}
		case s.request:
			w.run = func(n int, j *job) {
				for range n {
					j.ended(ex.WithContext(ctx).Get(func() (int, error) { return j.fn(ctx) }))
				}
			}
		default:
			w.run = func(n int, j *job) {
				for range n {
					j.ended(ex.Get(func() (int, error) { return j.fn(context.Background()) }))
				}
			}
		}
		return w
	}}
}
