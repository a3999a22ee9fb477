package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// probe is a question that is answered by running something.
type probe struct {
	section string
	asks    string // a fault in the first sections: a yes is one
	asked   func(s subject) bool
	run     func(s subject) answer
	risky   bool // may end the program, so it runs in one of its own
}

type answer string

const (
	yes     answer = "yes"
	no      answer = "no"
	na      answer = "n.a."
	hangs   answer = "hangs"
	crashes answer = "ends the program"
)

// when is yes where b.
func when(b bool) answer {
	if b {
		return yes
	}
	return no
}

// bound is how long any probe may take: a wedge is an answer.
const bound = 12 * time.Second

// answered runs a probe here.
func (p probe) answered(s subject) answer {
	if !p.asked(s) {
		return na
	}
	got := make(chan answer, 1)
	go func() {
		end := hangs // where the probe itself unwinds
		defer func() { got <- end }()
		end = p.run(s)
	}()
	select {
	case a := <-got:
		return a
	case <-time.After(bound):
		return hangs
	}
}

var (
	errDown     = errors.New("down")
	errShutdown = errors.New("shutdown")
)

func pause(d time.Duration) { <-time.After(d) }

// until asks cond again and again, and says whether it held within d.
func until(d time.Duration, cond func() bool) bool {
	for end := time.Now().Add(d); ; pause(2 * time.Millisecond) {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// ran makes a call that ends with result, and says whether fn ran.
func ran(ctx context.Context, c call, result error) bool {
	var ran atomic.Bool
	_ = c(ctx, func(context.Context) error { ran.Store(true); return result })
	return ran.Load()
}

func admits(c call) func() bool { return func() bool { return ran(background, c, nil) } }

// trip lets calls fail until one is refused.
func trip(c call) {
	for range 500 {
		if !ran(background, c, errDown) {
			return
		}
		pause(time.Millisecond)
	}
	panic("the breaker never opened")
}

// held is a call whose fn waits.
type held struct {
	end  chan error
	done chan struct{}
}

// hold makes a call on another goroutine; ok is false where it was refused. fn ignores its context.
func hold(ctx context.Context, c call) (h held, ok bool) {
	h = held{make(chan error, 1), make(chan struct{})}
	entered := make(chan struct{}, 1)
	go func() {
		defer close(h.done)
		_ = c(ctx, func(context.Context) error {
			select {
			case entered <- struct{}{}:
			default:
			}
			return <-h.end
		})
	}()
	select {
	case <-entered:
		return h, true
	case <-h.done:
		return h, false
	}
}

// release lets fn return err, and waits for the call.
func (h held) release(err error) {
	h.end <- err
	<-h.done
	pause(5 * time.Millisecond) // hystrix hears of it later
}

// probing waits until an open circuit admits a call, which then waits.
func probing(c call) (h held) {
	if !until(20*openFor, func() (ok bool) { h, ok = hold(background, c); return ok }) {
		panic("an open breaker never let a probe in")
	}
	return h
}

// unwinds makes a call on another goroutine whose fn runs leave, which does not return.
func unwinds(c call, leave func()) (entered bool) {
	var in atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		_ = c(background, func(context.Context) error { in.Store(true); leave(); return nil })
	}()
	<-done
	return in.Load()
}

// cancelled is a context that is done.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}

// runsDead is whether one of many calls with a context that is done runs fn; some choose at random.
func runsDead(make func() call) answer {
	for range 50 {
		if ran(cancelled(), make(), nil) {
			return yes
		}
	}
	return no
}

// took is how long f took.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
