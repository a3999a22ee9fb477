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
func hasClocked(s subject) bool { return s.clocked != nil }
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
	// multiplied: calls at once, all of which fail, run fn more than twice each.
	multiplied := func(calls int, make func(subject) func() call) func(subject) answer {
		return func(s subject) answer {
			c := make(s)()
			var runs atomic.Int64
			var all sync.WaitGroup
			for range calls {
				all.Go(func() {
					_ = c(background, func(context.Context) error { runs.Add(1); pause(5 * time.Millisecond); return errDown })
				})
			}
			all.Wait()
			return when(runs.Load() > 2*int64(calls))
		}
	}
	// again: the caller cancels while fn runs, and fn runs again.
	again := func(between time.Duration) func(subject) answer {
		return func(s subject) answer {
			for range 50 { // some choose at random
				ctx, cancel := context.WithCancel(background)
				n := 0
				_ = s.retry(between)(ctx, func(context.Context) error { n++; cancel(); return errDown })
				if n > 1 {
					return yes
				}
			}
			return no
		}
	}
	defaults, bounded := func(s subject) func() call { return s.storm }, func(s subject) func() call { return s.budget }
	hasStorm, hasBudget := func(s subject) bool { return s.storm != nil }, func(s subject) bool { return s.budget != nil }
	return []probe{
		{retrySection, "runs fn though the context was done before", hasRetry, func(s subject) answer {
			return runsDead(func() call { return s.retry(time.Millisecond) })
		}, false},
		{retrySection, "runs fn again though the caller cancelled, pause of 20 ms", hasRetry, again(20 * time.Millisecond), false},
		{retrySection, "the same without a pause, in one of 50 calls at least", hasRetry, again(0), false},
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
		{retrySection, "3 attempts, no pause, else defaults: 20 calls at once that fail make more than 40 runs", hasStorm, multiplied(20, defaults), false},
		{retrySection, "the same with 300 calls, more than 600 runs", hasStorm, multiplied(300, defaults), false},
		{retrySection, "20 calls, with whatever bounds retries more tightly: more than 40 runs", hasBudget, multiplied(20, bounded), false},
		{retrySection, "300 calls, with whatever bounds retries more tightly: more than 600 runs", hasBudget, multiplied(300, bounded), false},
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
		{limitSection, "told the time, and once an earlier one while it has tokens: mints some", hasClocked, func(s subject) answer {
			return steppedBack(s, 99)
		}, false},
		{limitSection, "the same while it has none", hasClocked, func(s subject) answer { return steppedBack(s, 100) }, false},
	}
}

// steppedBack: of 100 tokens some are taken, a second earlier one more is asked for, and two seconds after that whatever there is.
// One was earned, so 101 may be given; whether the one in the middle is among them is a matter of taste.
func steppedBack(s subject, taken int) answer {
	take, start, given := s.clocked(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	ask := func(second, n int) bool {
		ok := take(start.Add(time.Duration(second)*time.Second), n)
		if ok {
			given += n
		}
		return ok
	}
	ask(10, taken)
	ask(9, 1)
	for ask(11, 1) && given < 200 {
	}
	return when(given > 101)
}

func timeoutProbes() []probe {
	const within = 50 * time.Millisecond
	// late calls an fn that ignores its context and succeeds after 8 times the limit.
	late := func(s subject) (d time.Duration, left bool, err error) {
		h := make(chan struct{})
		go func() { pause(8 * within); close(h) }()
		var ended atomic.Bool
		d = took(func() {
			err = s.timeout(within)(background, func(context.Context) error { <-h; ended.Store(true); return nil })
		})
		left = !ended.Load()
		<-h
		pause(within)
		return d, left, err
	}
	return []probe{
		{timeoutSection, "runs fn though the context was done before", func(s subject) bool { return hasTimeout(s) && !s.deaf }, func(s subject) answer {
			return runsDead(func() call { return s.timeout(time.Minute) })
		}, false},
		{timeoutSection, "keeps its caller while fn ignores its context", hasTimeout, func(s subject) answer {
			d, _, _ := late(s)
			return when(d > 4*within)
		}, false},
		{timeoutSection, "leaves a goroutine behind when fn ignores its context", hasTimeout, func(s subject) answer {
			_, left, _ := late(s)
			return when(left)
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
		{timeoutSection, "runtime.Goexit in fn leaves the caller waiting until the limit", hasTimeout, func(s subject) answer {
			return when(took(func() { unwinds(s.timeout(within), runtime.Goexit) }) >= within)
		}, true},
	}
}
