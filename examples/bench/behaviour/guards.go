package main

import (
	"context"
	"runtime"
	"time"
)

const (
	slotsSection   = "Bulkhead: faults"
	breakerSection = "Circuit breaker: faults"
)

func hasBulkhead(s subject) bool { return s.bulkhead != nil }
func hasBreaker(s subject) bool  { return s.breaker != nil }

func slotProbes() []probe {
	lost := func(leave func()) func(subject) answer {
		return func(s subject) answer {
			c := s.bulkhead(1)
			unwinds(c, leave)
			return when(!until(openFor, admits(c)))
		}
	}
	return []probe{
		{slotsSection, "a panic in fn loses a slot", hasBulkhead, lost(func() { panic("in fn") }), true},
		{slotsSection, "runtime.Goexit in fn loses a slot", hasBulkhead, lost(runtime.Goexit), true},
		{slotsSection, "runs fn though the context was done before", hasBulkhead, func(s subject) answer {
			return runsDead(func() call { return s.bulkhead(1) })
		}, false},
		{slotsSection, "a configured wait for a slot is not waited", func(s subject) bool { return s.waiting != nil }, func(s subject) answer {
			c := s.waiting(1, 10*time.Second)
			h, _ := hold(background, c)
			go func() { pause(openFor); h.end <- nil }()
			return when(!ran(background, c, nil))
		}, false},
		{slotsSection, "a waiter whose context ends takes a slot along", func(s subject) bool { return s.waiting != nil && !s.deaf }, func(s subject) answer {
			c := s.waiting(1, 10*time.Second)
			h, _ := hold(background, c)
			ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
			defer cancel()
			ran(ctx, c, nil)
			h.release(nil)
			return when(!until(openFor, admits(c)))
		}, false},
		{slotsSection, "the slot is held during the backoff of a retry", func(s subject) bool { return s.retrySlots != nil }, func(s subject) answer {
			c := s.retrySlots(2*openFor, 1)
			failed, done := make(chan struct{}, 9), make(chan struct{})
			go func() {
				defer close(done)
				_ = c(background, func(context.Context) error { failed <- struct{}{}; return errDown })
			}()
			<-failed
			pause(20 * time.Millisecond)
			ok := until(openFor/2, admits(c))
			<-done
			return when(!ok)
		}, false},
		{slotsSection, "the slot of a call that timed out is free while its fn still runs", func(s subject) bool { return s.timedSlots != nil }, func(s subject) answer {
			c := s.timedSlots(20*time.Millisecond, 1)
			h, _ := hold(background, c)
			pause(100 * time.Millisecond)
			free := admits(c)()
			h.release(nil)
			return when(free)
		}, false},
	}
}

func breakerProbes() []probe {
	// wedged: the one probe of a half-open circuit never reports; does anybody else get in?
	wedged := func(leave func()) func(subject) answer {
		return func(s subject) answer {
			c := s.breaker()
			trip(c)
			until(20*openFor, func() bool { return unwinds(c, leave) })
			return when(!until(10*openFor, admits(c)))
		}
	}
	opened := func(s subject, each func(c call)) answer {
		c := s.breaker()
		for range 10 {
			each(c)
		}
		pause(20 * time.Millisecond)
		return when(!admits(c)())
	}
	return []probe{
		{breakerSection, "a probe that panics wedges the circuit", hasBreaker, wedged(func() { panic("in fn") }), true},
		{breakerSection, "a probe that calls runtime.Goexit wedges it", hasBreaker, wedged(runtime.Goexit), true},
		{breakerSection, "a probe that hangs wedges it", hasBreaker, func(s subject) answer {
			c := s.breaker()
			trip(c)
			h := probing(c)
			in := until(10*openFor, admits(c))
			h.release(nil)
			return when(!in)
		}, false},
		{breakerSection, "half-open, more calls than the one probe run at once", hasBreaker, func(s subject) answer {
			c := s.breaker()
			trip(c)
			first := probing(c)
			second, in := hold(background, c)
			if in {
				second.release(nil)
			}
			first.release(nil)
			return when(in)
		}, false},
		{breakerSection, "a success that began before it opened closes it", hasBreaker, func(s subject) answer {
			c := s.breaker()
			late, _ := hold(background, c)
			trip(c)
			late.release(nil)
			return when(admits(c)())
		}, false},
		{breakerSection, "a success that began before it opened ends a later half-open", hasBreaker, func(s subject) answer {
			c := s.breaker()
			late, _ := hold(background, c)
			trip(c)
			first := probing(c)
			late.release(nil)
			first.release(errDown) // the probe fails: it should open again
			return when(admits(c)())
		}, false},
		{breakerSection, "a failure that began before it opened spoils a later half-open", hasBreaker, func(s subject) answer {
			c := s.breaker()
			late, _ := hold(background, c)
			trip(c)
			first := probing(c)
			late.release(errDown)
			first.release(nil) // the probe succeeds: it should close
			return when(!until(openFor/4, admits(c)))
		}, false},
		{breakerSection, "runs fn though the context was done before", func(s subject) bool { return hasBreaker(s) && !s.deaf }, func(s subject) answer {
			return runsDead(s.breaker)
		}, false},
		{breakerSection, "callers who cancel open it", hasBreaker, func(s subject) answer {
			return opened(s, func(c call) {
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				_ = c(ctx, func(ctx context.Context) error { cancel(); return context.Canceled })
			})
		}, false},
		{breakerSection, "callers with 20 ms open it, where an answer takes 50 ms", hasBreaker, func(s subject) answer {
			return opened(s, func(c call) {
				ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
				defer cancel()
				_ = c(ctx, answersAfter(50*time.Millisecond))
			})
		}, false},
		{breakerSection, "an attempt that the caller's deadline cut short counts as a failure", func(s subject) bool { return s.retryBreaker != nil }, func(s subject) answer {
			c := s.retryBreaker(150 * time.Millisecond)
			runs := 0
			for range 2 { // a failure, and an attempt that has a quarter of the call's time: if that counts, the third failure opens it
				ctx, cancel := context.WithTimeout(background, 200*time.Millisecond)
				first := true
				_ = c(ctx, func(ctx context.Context) error {
					runs++
					if first {
						first = false
						return errDown
					}
					return answersAfter(time.Minute)(ctx)
				})
				cancel()
			}
			return when(runs < 4)
		}, false},
		{breakerSection, "a downstream that hangs until each caller's deadline never opens it", hasBreaker, func(s subject) answer {
			c := s.breaker()
			for range 5 {
				ctx, cancel := context.WithTimeout(background, 150*time.Millisecond)
				defer cancel()
				in := false
				_ = c(ctx, func(ctx context.Context) error { in = true; return answersAfter(time.Minute)(ctx) })
				if !in {
					return no
				}
			}
			pause(20 * time.Millisecond)
			return when(admits(c)())
		}, false},
	}
}

// answersAfter is an fn that takes d, and gives up when its context ends.
func answersAfter(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
}
