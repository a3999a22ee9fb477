package main

import (
	"context"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/fairlead/fairlead/examples/bench/byhand"
)

func handBreaker(byRate bool) *gobreaker.CircuitBreaker[int] {
	s := gobreaker.Settings{
		Timeout:     patience,
		IsExcluded:  byhand.Excluded,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= row },
	}
	if byRate {
		s.Interval, s.BucketPeriod = window, window/10
		s.ReadyToTrip = func(c gobreaker.Counts) bool {
			return c.Requests >= minCalls && float64(c.TotalFailures) >= failureRate*float64(c.Requests)
		}
	}
	return gobreaker.NewCircuitBreaker[int](s)
}

func handLimiter(spent bool) *rate.Limiter {
	if spent {
		return rate.NewLimiter(rate.Every(patience), 1)
	}
	return rate.NewLimiter(perSecond, burst)
}

func newHand(s shape) *byhand.Call {
	return &byhand.Call{Breaker: handBreaker(s.rate), Limiter: handLimiter(s.spent), Slots: semaphore.NewWeighted(int64(s.slots())), Limit: s.attempt, Attempts: attempts}
}

func handFull(s shape) contender {
	setup := "package byhand: a loop of 3 around gobreaker.Execute (100 failures in a row; refusals and context.Canceled excluded) around rate.Limiter.Allow (1,000,000/s, burst 1e9), semaphore.TryAcquire (1000, release deferred), context.WithTimeout (cancel deferred)"
	if s.rate {
		setup = "the same with Interval 10 s, BucketPeriod 1 s, ReadyToTrip at 0.9 of at least 20"
	}
	return contender{name: "by hand", setup: setup, begin: func() work {
		h := newHand(s)
		ctx, cancel := s.context()
		end := cancel
		if s.full {
			if !h.Slots.TryAcquire(1) {
				panic("no slot")
			}
			end = func() { h.Slots.Release(1); cancel() }
		}
		return work{refusal: s.refusal(gobreaker.ErrOpenState, byhand.ErrLimited, byhand.ErrFull), end: end, run: func(n int, j *job) {
			for range n {
				j.ended(h.Do(ctx, func(ctx context.Context) (int, error) { return j.fn(ctx) }))
			}
		}}
	}}
}
