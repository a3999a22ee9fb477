package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
)

var errCooling = errors.New("cooling")

// cooldowns are a pause that the other side may ask for: open ones have never heard of one, cooling ones of an hour. No peer has one.
func cooldowns(cooling bool) []contender {
	ctx := context.Background()
	ask := func(c *cooldown.Cooldown) *cooldown.Cooldown {
		if cooling {
			c.Hint(ctx, patience)
		}
		return c
	}
	fairlead := func() *cooldown.Cooldown { return ask(cooldown.MustNew(cooldown.Config{Max: patience})) }
	return []contender{
		{name: ours, setup: "cooldown.New{Max 1 h}; leaf.Do", begin: func() work {
			c := fairlead()
			return work{refusal: cooldown.ErrCooling, run: func(n int, j *job) {
				for range n {
					j.ended(leaf.Do(ctx, c, func(ctx context.Context) (int, error) { return j.fn(ctx) }))
				}
			}}
		}},
		{name: "fairlead, Acquire and Settle", setup: "the same; Acquire, fn, Settle by hand", begin: func() work {
			c := fairlead()
			return work{refusal: cooldown.ErrCooling, run: func(n int, j *job) {
				for range n {
					p, err := c.Acquire(ctx)
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
		{name: theirHand, setup: "an atomic.Int64 of nanoseconds since the start, 0 = open; time.Since where it is not", begin: func() work {
			epoch := time.Now()
			var until atomic.Int64
			if cooling {
				until.Store(int64(time.Since(epoch) + patience))
			}
			return work{refusal: errCooling, run: func(n int, j *job) {
				for range n {
					if u := until.Load(); u > 0 && int64(time.Since(epoch)) < u {
						j.ended(0, errCooling)
						continue
					}
					j.ended(j.fn(ctx))
				}
			}}
		}},
	}
}
