package main

import (
	"context"
	"time"

	avast "github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v5"
	"github.com/eapache/go-resiliency/retrier"
	"github.com/failsafe-go/failsafe-go"

	"github.com/fairlead/fairlead/leaf/retry"
)

// retries are three attempts at once, without a pause between them.
func retries() []contender {
	ctx := context.Background()
	return []contender{
		{name: ours, setup: "retry.New{MaxAttempts 3, retry.Immediate, NoBudget}; retry.Do", begin: func() work {
			r := fairleadRetry(false)
			return work{run: func(n int, j *job) {
				for range n {
					j.ended(retry.Do(ctx, r, func(ctx context.Context) (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: theirHand, setup: "a loop of 3 that looks at ctx.Err() before each", begin: func() work {
			return work{run: func(n int, j *job) {
				for range n {
					j.ended(loop(ctx, func(ctx context.Context) (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: "failsafe-go retrypolicy", setup: "failsafe.With(retrypolicy of 3 attempts, no delay), built once; Get", begin: func() work {
			ex := failsafe.With[int](failsafeRetry())
			return work{run: func(n int, j *job) {
				for range n {
					j.ended(ex.Get(func() (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: "cenkalti/backoff v5", setup: "backoff.Retry(ctx, fn, WithBackOff(ZeroBackOff), WithMaxTries(3)), options made once", begin: func() work {
			options := []backoff.RetryOption{backoff.WithBackOff(&backoff.ZeroBackOff{}), backoff.WithMaxTries(attempts)}
			return work{run: func(n int, j *job) {
				for range n {
					j.ended(backoff.Retry(ctx, func() (int, error) { return j.fn(ctx) }, options...))
				}
			}}
		}},
		{name: "avast/retry-go v5", setup: "retry.NewWithData[int](Attempts(3), Delay(0), DelayType(FixedDelay)), built once (so without a call's own context); Do", begin: func() work {
			r := avast.NewWithData[int](avast.Attempts(attempts), avast.Delay(0), avast.DelayType(avast.FixedDelay))
			return work{run: func(n int, j *job) {
				for range n {
					j.ended(r.Do(func() (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: "eapache retrier", setup: "retrier.New(ConstantBackoff(2, 0)); RunCtx", begin: func() work {
			r := retrier.New(retrier.ConstantBackoff(attempts-1, time.Duration(0)), nil)
			return work{run: func(n int, j *job) {
				for range n {
					v := 0
					err := r.RunCtx(ctx, func(ctx context.Context) (err error) { v, err = j.fn(ctx); return err })
					j.ended(v, err)
				}
			}}
		}},
	}
}

func loop(ctx context.Context, fn func(context.Context) (int, error)) (v int, err error) {
	for range attempts {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if v, err = fn(ctx); err == nil {
			return v, nil
		}
	}
	return 0, err
}
