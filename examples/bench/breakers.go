package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/afex/hystrix-go/hystrix"
	eapache "github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go"
	fsbreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// breakers open after 100 failures in a row, or judge a rate over 10 s.
func breakers(rate bool) []contender {
	ctx := context.Background()
	rule := "100 failures in a row"
	if rate {
		rule = "0.9 of at least 20 calls in 10 s"
	}
	all := []contender{
		{name: ours, setup: "breaker.New{" + rule + "}; leaf.Do", begin: func() work {
			b := fairleadBreaker(rate)
			return work{refusal: breaker.ErrOpen, run: func(n int, j *job) {
				for range n {
					j.ended(leaf.Do(ctx, b, func(ctx context.Context) (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: "fairlead, Acquire and Settle", setup: "the same; Acquire, fn, Settle by hand", begin: func() work {
			b := fairleadBreaker(rate)
			return work{refusal: breaker.ErrOpen, run: func(n int, j *job) {
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
		}},
		{name: "gobreaker", setup: "gobreaker v2 CircuitBreaker{" + rule + "}; Execute", begin: func() work {
			b := handBreaker(rate)
			return work{refusal: gobreaker.ErrOpenState, run: func(n int, j *job) {
				for range n {
					j.ended(b.Execute(func() (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: "failsafe-go circuitbreaker", setup: "failsafe.With(circuitbreaker{" + rule + "}), built once; Get", begin: func() work {
			ex := failsafe.With[int](failsafeBreaker(rate))
			return work{refusal: fsbreaker.ErrOpen, run: func(n int, j *job) {
				for range n {
					j.ended(ex.Get(func() (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
	}
	if rate {
		return append(all, hystrixContender())
	}
	return append(all, contender{name: "eapache breaker", setup: "breaker.New(100, 1, 1 h); Run", begin: func() work {
		b := eapache.New(row, 1, patience) // once it opens, a goroutine sleeps for the open time
		return work{refusal: eapache.ErrBreakerOpen, run: func(n int, j *job) {
			for range n {
				v := 0
				err := b.Run(func() (err error) { v, err = j.fn(ctx); return err })
				j.ended(v, err)
			}
		}}
	}})
}

var commands atomic.Int64

// hystrixContender has a timeout and a pool of slots in it, which cannot be left out.
func hystrixContender() contender {
	return contender{name: "hystrix-go", setup: "hystrix.ConfigureCommand{90 % of at least 20 calls in 10 s, 1000 slots, timeout 60 s}: breaker, slots and timeout in one; DoC",
		begin: func() work {
			name := fmt.Sprint("command ", commands.Add(1))
			hystrix.ConfigureCommand(name, hystrix.CommandConfig{Timeout: 60_000, MaxConcurrentRequests: slots,
				RequestVolumeThreshold: minCalls, ErrorPercentThreshold: failureRate * 100, SleepWindow: 3_600_000})
			return work{refusal: hystrix.ErrCircuitOpen, run: func(n int, j *job) {
				for range n {
					v := 0
					err := hystrix.DoC(context.Background(), name, func(ctx context.Context) (err error) { v, err = j.fn(ctx); return err }, nil)
					j.ended(v, err)
				}
			}}
		}}
}
