package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/afex/hystrix-go/hystrix"
	avast "github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v5"
	eabreaker "github.com/eapache/go-resiliency/breaker"
	"github.com/eapache/go-resiliency/deadline"
	"github.com/eapache/go-resiliency/retrier"
	easemaphore "github.com/eapache/go-resiliency/semaphore"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/fairlead/fairlead/examples/bench/byhand"
)

func threeInARow(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 3 }

// composed is the composition by hand; its breaker leaves out what a careful programmer leaves out.
func composed() subject {
	run := func(c *byhand.Call) call {
		return func(ctx context.Context, fn func(context.Context) error) error {
			_, err := c.Do(ctx, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
			return err
		}
	}
	circuit := func() *gobreaker.CircuitBreaker[int] {
		return gobreaker.NewCircuitBreaker[int](gobreaker.Settings{Timeout: openFor, ReadyToTrip: threeInARow, IsExcluded: byhand.Excluded})
	}
	slots := func(n int) *semaphore.Weighted { return semaphore.NewWeighted(int64(n)) }
	return subject{
		name:     "by hand",
		bulkhead: func(n int) call { return run(&byhand.Call{Slots: slots(n)}) },
		breaker:  func() call { return run(&byhand.Call{Breaker: circuit()}) },
		retry:    func(pause time.Duration) call { return run(&byhand.Call{Attempts: 3, Base: pause, Steady: true}) },
		timeout:  func(limit time.Duration) call { return run(&byhand.Call{Limit: limit}) },
		timedOut: context.DeadlineExceeded,
		retryBreaker: func(pause time.Duration) call {
			return run(&byhand.Call{Attempts: 3, Base: pause, Steady: true, Breaker: circuit()})
		},
		retrySlots: func(pause time.Duration, n int) call {
			return run(&byhand.Call{Attempts: 3, Base: pause, Steady: true, Slots: slots(n)})
		},
		timedSlots: func(limit time.Duration, n int) call { return run(&byhand.Call{Limit: limit, Slots: slots(n)}) },
		storm:      func() call { return run(&byhand.Call{Attempts: 3}) },
	}
}

func gobreakerAlone() subject {
	return subject{name: "gobreaker", deaf: true, breaker: func() call {
		b := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Timeout: openFor, ReadyToTrip: threeInARow})
		return func(ctx context.Context, fn func(context.Context) error) error {
			_, err := b.Execute(func() (any, error) { return nil, fn(ctx) })
			return err
		}
	}}
}

func eapache() subject {
	return subject{
		name: "eapache/go-resiliency",
		deaf: true,
		breaker: func() call {
			b := eabreaker.New(3, 1, openFor)
			return func(ctx context.Context, fn func(context.Context) error) error {
				return b.Run(func() error { return fn(ctx) })
			}
		},
		waiting: func(n int, wait time.Duration) call {
			s := easemaphore.New(n, wait)
			return func(ctx context.Context, fn func(context.Context) error) error {
				if err := s.Acquire(); err != nil {
					return err
				}
				defer s.Release()
				return fn(ctx)
			}
		},
		retry: func(pause time.Duration) call { return retrier.New(retrier.ConstantBackoff(2, pause), nil).RunCtx },
		storm: func() call { return retrier.New(retrier.ConstantBackoff(2, 0), nil).RunCtx },
		retryBreaker: func(pause time.Duration) call {
			r, b := retrier.New(retrier.ConstantBackoff(2, pause), nil), eabreaker.New(3, 1, openFor)
			return func(ctx context.Context, fn func(context.Context) error) error {
				return r.RunCtx(ctx, func(ctx context.Context) error { return b.Run(func() error { return fn(ctx) }) })
			}
		},
		delays: eapacheDelays,
		timeout: func(limit time.Duration) call {
			d := deadline.New(limit)
			return func(ctx context.Context, fn func(context.Context) error) error {
				return d.Run(func(stop <-chan struct{}) error {
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					go func() {
						select {
						case <-stop:
							cancel()
						case <-ctx.Done():
						}
					}()
					return fn(ctx)
				})
			}
		},
		timedOut: deadline.ErrTimedOut,
	}
}

// eapacheDelays are the pauses between runs, since nothing tells of them: ten times as long as asked for, so that a timer which
// fires late does not look like jitter.
func eapacheDelays(first, most time.Duration) (all []time.Duration) {
	r := retrier.New(retrier.LimitedExponentialBackoff(20, 10*first, 10*most), nil)
	r.SetJitter(0.5)
	var last time.Time
	_ = r.Run(func() error {
		if now := time.Now(); !last.IsZero() {
			all = append(all, (now.Sub(last)-5*time.Millisecond)/10)
		}
		last = time.Now()
		return errDown
	})
	return all
}

var commands atomic.Int64

// hystrixGo is breaker, bulkhead and timeout in one. The timeout is its default of 1 s where none is asked for; the other two are
// far away then.
func hystrixGo() subject {
	command := func(c hystrix.CommandConfig) call {
		name := fmt.Sprint("command ", commands.Add(1))
		hystrix.ConfigureCommand(name, c)
		return func(ctx context.Context, fn func(context.Context) error) error {
			return hystrix.DoC(ctx, name, fn, nil)
		}
	}
	const never = 1 << 30
	return subject{
		name: "hystrix-go",
		bulkhead: func(n int) call {
			return command(hystrix.CommandConfig{MaxConcurrentRequests: n, RequestVolumeThreshold: never})
		},
		breaker: func() call {
			return command(hystrix.CommandConfig{MaxConcurrentRequests: 100, RequestVolumeThreshold: 3, ErrorPercentThreshold: 50, SleepWindow: int(openFor.Milliseconds())})
		},
		timeout: func(limit time.Duration) call {
			return command(hystrix.CommandConfig{Timeout: int(limit.Milliseconds()), MaxConcurrentRequests: 100, RequestVolumeThreshold: never})
		},
		timedOut: hystrix.ErrTimeout,
		timedSlots: func(limit time.Duration, n int) call {
			return command(hystrix.CommandConfig{Timeout: int(limit.Milliseconds()), MaxConcurrentRequests: n, RequestVolumeThreshold: never})
		},
		features: map[string]func() bool{fallbackFeature: func() bool {
			v := 0
			err := hystrix.Do("fallback", func() error { return errDown }, func(error) error { v = 7; return nil })
			return v == 7 && err == nil
		}},
	}
}

func cenkalti() subject {
	retry := func(b func() backoff.BackOff) call {
		return func(ctx context.Context, fn func(context.Context) error) error {
			_, err := backoff.Retry(ctx, func() (any, error) { return nil, fn(ctx) }, backoff.WithBackOff(b()), backoff.WithMaxTries(3))
			return err
		}
	}
	return subject{
		name: "cenkalti/backoff",
		retry: func(pause time.Duration) call {
			return retry(func() backoff.BackOff { return backoff.NewConstantBackOff(pause) })
		},
		storm: func() call { return retry(func() backoff.BackOff { return &backoff.ZeroBackOff{} }) },
		delays: func(first, most time.Duration) (all []time.Duration) {
			b := backoff.NewExponentialBackOff()
			b.InitialInterval, b.MaxInterval, b.Multiplier = first, most, 2
			for range 20 {
				all = append(all, b.NextBackOff())
			}
			return all
		},
	}
}

func avastRetry() subject {
	retry := func(options ...avast.Option) call {
		return func(ctx context.Context, fn func(context.Context) error) error {
			return avast.New(append(options, avast.Attempts(3), avast.Context(ctx))...).Do(func() error { return fn(ctx) })
		}
	}
	return subject{
		name:  "avast/retry-go",
		retry: func(pause time.Duration) call { return retry(avast.Delay(pause), avast.DelayType(avast.FixedDelay)) },
		storm: func() call { return retry(avast.Delay(0), avast.DelayType(avast.FixedDelay)) },
		delays: func(first, most time.Duration) []time.Duration { // by default backoff and jitter are added
			var asked asked
			_ = avast.New(avast.Attempts(20), avast.Delay(first), avast.MaxDelay(most), avast.MaxJitter(first), avast.WithTimer(&asked)).Do(func() error { return errDown })
			return asked
		},
		budget: func() call {
			shared := avast.WithThrottle(avast.NewFixedTokenBucketThrottle(avast.FixedTokenBucketThrottleConfig{}))
			return retry(avast.Delay(0), avast.DelayType(avast.FixedDelay), shared)
		},
	}
}

// asked is a timer that remembers what it was asked to wait, and does not.
type asked []time.Duration

func (a *asked) After(d time.Duration) <-chan time.Time {
	*a = append(*a, d)
	return time.After(0)
}

func xTimeRate() subject {
	return subject{
		name: "x/time/rate",
		limiter: func(every time.Duration) limiter {
			l := rate.NewLimiter(rate.Every(every), 1)
			return limiter{l.Allow, l.Wait}
		},
		clocked: func() func(time.Time, int) bool { return rate.NewLimiter(1, 100).AllowN },
	}
}

// xSyncSemaphore is called as its documentation does it: Acquire, and Release deferred.
func xSyncSemaphore() subject {
	return subject{name: "x/sync/semaphore", waiting: func(n int, wait time.Duration) call {
		s := semaphore.NewWeighted(int64(n))
		return func(ctx context.Context, fn func(context.Context) error) error {
			short, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			if err := s.Acquire(short, 1); err != nil {
				return err
			}
			defer s.Release(1)
			return fn(ctx)
		}
	}}
}

func retryableHTTP() subject {
	return subject{name: "go-retryablehttp", client: func(base http.RoundTripper, attempts int, pause time.Duration) func(*http.Request) (*http.Response, error) {
		c := retryablehttp.NewClient()
		c.HTTPClient, c.Logger, c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = &http.Client{Transport: base}, nil, attempts-1, pause, pause
		return func(req *http.Request) (*http.Response, error) {
			r, err := retryablehttp.FromRequest(req)
			if err != nil {
				return nil, err
			}
			return c.Do(r)
		}
	}}
}
