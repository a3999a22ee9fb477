package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	retrySection   = "Retry: faults"
	limitSection   = "Rate limit: faults"
	timeoutSection = "Timeout: faults"
)

func hasRetry(s subject) bool   { return s.retry != nil }
func hasLimiter(s subject) bool { return s.limiter != nil }
func hasTimeout(s subject) bool { return s.timeout != nil }

func fails(context.Context) error { return errDown }

// cutShort is the error of a retry that was cancelled, with a cause, during its backoff.
func cutShort(s subject) error {
	ctx, cancel := context.WithCancelCause(background)
	return s.retry(10*time.Second)(ctx, func(context.Context) error {
		go func() { pause(20 * time.Millisecond); cancel(errShutdown) }()
		return errDown
	})
}

func retryProbes() []probe {
	multiplied := func(make func(subject) func() call) func(subject) answer {
		return func(s subject) answer {
			c := make(s)()
			var runs atomic.Int64
			var all sync.WaitGroup
			for range 300 {
				all.Go(func() {
					_ = c(background, func(context.Context) error { runs.Add(1); pause(5 * time.Millisecond); return errDown })
				})
			}
			all.Wait()
			return when(runs.Load() > 2*300)
		}
	}
	return []probe{
		{retrySection, "runs fn though the context was done before", hasRetry, func(s subject) answer {
			return runsDead(func() call { return s.retry(time.Millisecond) })
		}, false},
		{retrySection, "runs fn again though the caller cancelled", hasRetry, func(s subject) answer {
			for range 50 { // some choose at random
				ctx, cancel := context.WithCancel(background)
				n := 0
				_ = s.retry(0)(ctx, func(context.Context) error { n++; cancel(); return errDown })
				if n > 1 {
					return yes
				}
			}
			return no
		}, false},
		{retrySection, "sleeps a backoff that ends after the deadline", hasRetry, func(s subject) answer {
			ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
			defer cancel()
			return when(took(func() { _ = s.retry(10*time.Second)(ctx, fails) }) > 400*time.Millisecond)
		}, false},
		{retrySection, "out of attempts, the last failure is lost", hasRetry, func(s subject) answer {
			return when(!errors.Is(s.retry(time.Millisecond)(background, fails), errDown))
		}, false},
		{retrySection, "cancelled during a backoff, the last failure is lost", hasRetry, func(s subject) answer {
			return when(!errors.Is(cutShort(s), errDown))
		}, false},
		{retrySection, "cancelled with a cause during a backoff, context.Canceled is not in the error", hasRetry, func(s subject) answer {
			return when(!errors.Is(cutShort(s), context.Canceled))
		}, false},
		{retrySection, "cancelled with a cause during a backoff, the cause is not in the error", hasRetry, func(s subject) answer {
			return when(!errors.Is(cutShort(s), errShutdown))
		}, false},
		{retrySection, "a delay is longer than the cap, by jitter", func(s subject) bool { return s.delays != nil }, func(s subject) answer {
			const most = 5 * time.Millisecond
			for _, d := range s.delays(4*time.Millisecond, most) {
				if d > most {
					return yes
				}
			}
			return no
		}, false},
		{retrySection, "retries what an open breaker refused", func(s subject) bool { return s.retryBreaker != nil }, func(s subject) answer {
			const between = openFor / 2
			c := s.retryBreaker(between)
			_ = c(background, fails) // three failures: it is open
			return when(took(func() { _ = c(background, fails) }) > between*9/10)
		}, false},
		{retrySection, "with defaults, retries triple the load of an outage", func(s subject) bool { return s.storm != nil },
			multiplied(func(s subject) func() call { return s.storm }), false},
		{retrySection, "with whatever bounds retries, they more than double it", func(s subject) bool { return s.budget != nil },
			multiplied(func(s subject) func() call { return s.budget }), false},
	}
}

func limitProbes() []probe {
	const every = 300 * time.Millisecond
	// burnt: a token is due after every; is it there soon after that, although others gave up waiting before?
	burnt := func(give func(l limiter)) func(subject) answer {
		return func(s subject) answer {
			l := s.limiter(every)
			l.allow()
			began := time.Now()
			give(l)
			pause(time.Until(began.Add(every)))
			return when(!until(every/2, l.allow))
		}
	}
	waitFor := func(l limiter, d time.Duration) {
		ctx, cancel := context.WithTimeout(background, d)
		defer cancel()
		_ = l.wait(ctx)
	}
	return []probe{
		{limitSection, "waits that cannot end before the deadline burn tokens", hasLimiter, burnt(func(l limiter) {
			for range 5 {
				waitFor(l, 10*time.Millisecond)
			}
		}), false},
		{limitSection, "a waiter that is cancelled burns its token", hasLimiter, burnt(func(l limiter) {
			ctx, cancel := context.WithCancel(background)
			go func() { pause(20 * time.Millisecond); cancel() }()
			_ = l.wait(ctx)
		}), false},
		{limitSection, "waits until the deadline though no token comes before", hasLimiter, func(s subject) answer {
			l := s.limiter(time.Minute)
			l.allow()
			return when(took(func() { waitFor(l, 500*time.Millisecond) }) > 400*time.Millisecond)
		}, false},
		{limitSection, "gives a token to a context that was done before", hasLimiter, func(s subject) answer {
			l := s.limiter(time.Minute)
			_ = l.wait(cancelled())
			return when(!l.allow())
		}, false},
		{limitSection, "a clock that steps back mints tokens", func(s subject) bool { return s.clocked != nil }, func(s subject) answer {
			l, start := s.clocked(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			l.take(start.Add(10*time.Second), 100)
			l.take(start.Add(9*time.Second), 1)
			l.set(start.Add(9 * time.Second))
			return when(l.take(start.Add(11*time.Second), 2)) // one was earned
		}, false},
	}
}

func timeoutProbes() []probe {
	const within = 50 * time.Millisecond
	// late calls an fn that ignores its context and succeeds after 8 times the limit.
	late := func(s subject) (d time.Duration, left int, err error) {
		before := runtime.NumGoroutine()
		h := make(chan struct{})
		go func() { pause(8 * within); close(h) }()
		before++
		d = took(func() { err = s.timeout(within)(background, func(context.Context) error { <-h; return nil }) })
		left = runtime.NumGoroutine() - before
		<-h
		pause(within)
		return d, left, err
	}
	return []probe{
		{timeoutSection, "runs fn though the context was done before", hasTimeout, func(s subject) answer {
			return runsDead(func() call { return s.timeout(time.Minute) })
		}, false},
		{timeoutSection, "keeps its caller while fn ignores its context", hasTimeout, func(s subject) answer {
			d, _, _ := late(s)
			return when(d > 4*within)
		}, false},
		{timeoutSection, "leaves a goroutine behind when fn ignores its context", hasTimeout, func(s subject) answer {
			d, left, _ := late(s)
			return when(d < 4*within && left > 0)
		}, false},
		{timeoutSection, "throws a success away that came late", hasTimeout, func(s subject) answer {
			_, _, err := late(s)
			return when(err != nil)
		}, false},
		{timeoutSection, "its error is the same when it was the caller's deadline", hasTimeout, func(s subject) answer {
			own := s.timeout(within)(background, answersAfter(time.Minute))
			ctx, cancel := context.WithTimeout(background, within)
			defer cancel()
			callers := s.timeout(time.Minute)(ctx, answersAfter(time.Minute))
			return when(errors.Is(own, s.timedOut) == errors.Is(callers, s.timedOut))
		}, false},
		{timeoutSection, "a panic in fn ends the program, since nobody can recover it", hasTimeout, func(s subject) answer {
			unwinds(s.timeout(time.Minute), func() { panic("in fn") })
			return no
		}, true},
		{timeoutSection, "runtime.Goexit in fn leaves the caller waiting", hasTimeout, func(s subject) answer {
			unwinds(s.timeout(time.Minute), runtime.Goexit)
			return no
		}, true},
	}
}
