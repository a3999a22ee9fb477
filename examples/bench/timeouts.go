package main

import (
	"context"

	"github.com/eapache/go-resiliency/deadline"
	"github.com/failsafe-go/failsafe-go"
	fstimeout "github.com/failsafe-go/failsafe-go/timeout"

	"github.com/fairlead/fairlead/leaf/timeout"
)

// timeouts limit a call to a minute that none of them needs.
func timeouts(asks bool) []contender {
	ctx := context.Background()
	all := []contender{
		{name: ours, setup: "timeout.New{1 min}; timeout.Do", begin: func() work {
			t := timeout.MustNew(timeout.Config{Limit: limit})
			return work{run: func(n int, j *job) {
				for range n {
					j.ended(timeout.Do(ctx, t, func(ctx context.Context) (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: "context.WithTimeout", setup: "context.WithTimeout(1 min), cancel deferred", begin: func() work {
			return work{run: func(n int, j *job) {
				for range n {
					j.ended(within(ctx, func(ctx context.Context) (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: "failsafe-go timeout", setup: "failsafe.With(timeout.New(1 min)), built once; Get, or GetWithExecution where fn asks for Done", begin: func() work {
			ex := failsafe.With[int](fstimeout.New[int](limit))
			if asks {
				return work{run: func(n int, j *job) {
					for range n {
						j.ended(ex.GetWithExecution(func(e failsafe.Execution[int]) (int, error) { return j.fn(e.Context()) }))
					}
				}}
			}
			return work{run: func(n int, j *job) {
				for range n {
					j.ended(ex.Get(func() (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
	}
	if asks {
		return all // eapache's gives fn a channel, no context
	}
	return append(all, contender{name: "eapache deadline", setup: "deadline.New(1 min); Run, which starts a goroutine", begin: func() work {
		d := deadline.New(limit)
		return work{run: func(n int, j *job) {
			for range n {
				v := 0
				err := d.Run(func(<-chan struct{}) (err error) { v, err = j.fn(ctx); return err })
				j.ended(v, err)
			}
		}}
	}})
}

func within(ctx context.Context, fn func(context.Context) (int, error)) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return fn(ctx)
}
