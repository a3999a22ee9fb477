package main

import (
	"context"
	"errors"
	"time"

	eapache "github.com/eapache/go-resiliency/semaphore"
	fsbulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	"go.uber.org/ratelimit"
	"golang.org/x/sync/semaphore"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
)

var (
	errNoToken = errors.New("no token")
	errFull    = errors.New("no slot")
)

// limiters give a token, or say that there is none. Spent ones have one an hour, and have given it.
func limiters(spent bool) []contender {
	ctx := context.Background()
	tokens := func(name, setup string, allow func() func() bool) contender {
		return contender{name: name, setup: setup, begin: func() work {
			allow := allow()
			return work{refusal: errNoToken, run: func(n int, j *job) {
				for range n {
					if !allow() {
						j.ended(0, errNoToken)
						continue
					}
					j.ended(j.fn(ctx))
				}
			}}
		}}
	}
	all := []contender{
		tokens(ours, "ratelimit.New{Rate 1,000,000, Burst 1e9}; Allow", func() func() bool { return fairleadLimiter(spent).Allow }),
		tokens("x/time/rate", "rate.NewLimiter(1,000,000, 1e9); Allow", func() func() bool { return handLimiter(spent).Allow }),
		tokens("failsafe-go ratelimiter", "ratelimiter.NewBursty(1e9, 1 s); TryAcquirePermit", func() func() bool { return failsafeLimiter(spent).TryAcquirePermit }),
	}
	if spent {
		return all // uber's cannot refuse: it sleeps
	}
	return append(all, tokens("uber ratelimit", "ratelimit.New(1e9): it never has to sleep; Take", func() func() bool {
		l := ratelimit.New(burst)
		return func() bool { return !l.Take().IsZero() }
	}))
}

// bulkheads take a slot and give it back.
func bulkheads(full bool) []contender {
	ctx := context.Background()
	n := slots
	if full {
		n = 1
	}
	all := []contender{
		{name: ours, setup: "bulkhead.New{MaxConcurrent 1000}; Acquire, Settle", begin: func() work {
			b := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: n})
			w := work{refusal: bulkhead.ErrFull, run: func(n int, j *job) {
				for range n {
					p, err := b.Acquire(ctx)
					if err != nil {
						j.ended(0, err)
						continue
					}
					v, err := j.fn(ctx)
					_ = p.Settle(ctx, leaf.Outcome{Err: err})
					j.ended(v, err)
				}
			}}
			if full {
				held, err := b.Acquire(ctx)
				if err != nil {
					panic(err)
				}
				w.end = func() { _ = held.Settle(ctx, leaf.Outcome{}) }
			}
			return w
		}},
		slot(full, "x/sync/semaphore", "semaphore.NewWeighted(1000); TryAcquire, Release", func() (func() bool, func()) {
			s := semaphore.NewWeighted(int64(n))
			return func() bool { return s.TryAcquire(1) }, func() { s.Release(1) }
		}),
		slot(full, "failsafe-go bulkhead", "bulkhead.New(1000); TryAcquirePermit, ReleasePermit", func() (func() bool, func()) {
			b := fsbulkhead.New[int](uint(n))
			return b.TryAcquirePermit, b.ReleasePermit
		}),
		slot(full, "a channel", "make(chan struct{}, 1000); select with default, receive", func() (func() bool, func()) {
			c := make(chan struct{}, n)
			return func() bool {
				select {
				case c <- struct{}{}:
					return true
				default:
					return false
				}
			}, func() { <-c }
		}),
	}
	if full {
		return all // eapache's cannot refuse at once: where it waits for an instant only, it now and then refuses a free slot too
	}
	return append(all, slot(full, "eapache semaphore", "semaphore.New(1000, 1 s); Acquire, Release", func() (func() bool, func()) {
		s := eapache.New(n, time.Second)
		return func() bool { return s.Acquire() == nil }, s.Release
	}))
}

func slot(full bool, name, setup string, make func() (take func() bool, give func())) contender {
	ctx := context.Background()
	return contender{name: name, setup: setup, begin: func() work {
		take, give := make()
		w := work{refusal: errFull, run: func(n int, j *job) {
			for range n {
				if !take() {
					j.ended(0, errFull)
					continue
				}
				v, err := j.fn(ctx)
				give()
				j.ended(v, err)
			}
		}}
		if full {
			take()
			w.end = give
		}
		return w
	}}
}
