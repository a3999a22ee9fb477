package redisscript

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	firstProbe = 100 * time.Millisecond // after the breaker opened; then each time twice as long
	lastProbe  = time.Second            // at most
	maxProbes  = 4                      // under way; more than one only while earlier ones hang
)

// ping takes the way of a real call (the same node, credentials and permissions) and touches nothing.
var ping = NewScript("return 1")

// probe is the one goroutine that asks while the breaker is open; it ends when the breaker closes, or the store.
func (s *Store) probe(ctx context.Context, opened *openError) {
	hanging := make(chan struct{}, maxProbes)
	kick := s.health.kick
	for delay := firstProbe; ; delay = min(2*delay, lastProbe) {
		// Processes that lost the store together do not come back together. Below the full step, so that a recovered store
		// is found within it, the probe's own time included.
		wait := time.Duration(float64(delay) * (0.6 + 0.3*rand.Float64()))
		switch s.pause(ctx, opened, wait, kick) {
		case over:
			return
		case kicked:
			kick = nil // one early probe: a store that is alive and too slow would kick with every answer
		case waited:
			kick = s.health.kick
		}
		s.ask(ctx, opened, hanging)
	}
}

// How a pause ended.
type rest uint8

const (
	waited rest = iota // its time passed
	kicked             // a sign of life
	over               // the breaker closed, or the store
)

// pause waits for d, or until something is known that makes it worth asking at once.
func (s *Store) pause(ctx context.Context, opened *openError, d time.Duration, kick <-chan struct{}) rest {
	timer := time.NewTimer(d)
	defer timer.Stop()
	watch, stop := s.watch(ctx)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return over
		case <-opened.over:
			return over
		case <-kick:
			return kicked
		case <-timer.C:
			return waited
		case <-watch.tick:
			if watch.moved(ctx) {
				return waited
			}
		}
	}
}

// ask sends one probe, and waits for it as long as for any call.
func (s *Store) ask(ctx context.Context, opened *openError, hanging chan struct{}) {
	select {
	case hanging <- struct{}{}: // where so many hang, the end of one of them is the next thing to know
	case <-ctx.Done():
		return
	case <-opened.over:
		return
	}
	inner, cancel := context.WithCancel(ctx)
	var late atomic.Bool
	answer := make(chan error, 1)
	if !s.Go(func(context.Context) {
		defer func() { <-hanging }()
		defer cancel()
		_, err := s.guarded(inner, &flight{}, Call{Script: ping})
		answer <- err
		if err == nil && late.Load() {
			s.health.hint()
		}
	}) {
		cancel()
		<-hanging
		return
	}
	timer := time.NewTimer(s.opts.Timeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-answer:
	case <-timer.C:
		late.Store(true)
		cancel()
		select {
		case err = <-answer:
		default:
			return
		}
	}
	if err == nil {
		s.health.succeeded(ctx, "")
	}
}
