package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// floors are what the figures below are made of: fn and its closure, and one reading of a clock, one mutex, one atomic addition.
func floors() []contender {
	epoch := time.Now()
	var mu sync.Mutex
	var n atomic.Int64
	with := func(name, setup string, run func(n int, j *job)) contender {
		return contender{name: name, setup: setup, begin: func() work { return work{run: run} }}
	}
	ctx := context.Background()
	return []contender{
		with("fn alone", "fn, called directly", func(n int, j *job) {
			for range n {
				j.ended(j.fn(ctx))
			}
		}),
		with("fn, time.Now", "and the clock", func(n int, j *job) {
			for range n {
				if time.Now().IsZero() {
					return
				}
				j.ended(j.fn(ctx))
			}
		}),
		with("fn, time.Since", "and the monotonic clock", func(n int, j *job) {
			for range n {
				if time.Since(epoch) < 0 {
					return
				}
				j.ended(j.fn(ctx))
			}
		}),
		with("fn, a mutex", "and Lock, Unlock", func(n int, j *job) {
			for range n {
				mu.Lock()
				v, err := j.fn(ctx)
				mu.Unlock()
				j.ended(v, err)
			}
		}),
		with("fn, an atomic addition", "and Add", func(calls int, j *job) {
			for range calls {
				n.Add(1)
				j.ended(j.fn(ctx))
			}
		}),
	}
}
