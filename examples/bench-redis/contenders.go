package main

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/breaker/redisbreaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/bulkhead/redisbulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/ratelimit/redislimit"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// What is shared. The rate is one that the slower limiter can still use up.
const (
	rate    = 10_000
	burst   = 1_000
	slots   = 8
	patient = 5 * time.Second // for the store, so that a busy machine is no outage
)

const (
	limiters  = "limiter"
	bulkheads = "bulkhead, given back at once"
	holders   = "bulkhead, held for 1 ms"
	breakers  = "breaker"
)

var contenders = []contender{
	{limiters, "redislimit", limiter(0)},
	{limiters, "redislimit, Prefetch 100", limiter(100)},
	{limiters, "redis_rate v10", peer},
	{bulkheads, "redisbulkhead, 1 instance", pairs(1, 0)},
	{bulkheads, "redisbulkhead, 2 instances", pairs(2, 0)},
	{bulkheads, "a lease of two calls, polled", plainLease(0)},
	{holders, "redisbulkhead, 1 instance", pairs(1, time.Millisecond)},
	{holders, "redisbulkhead, 2 instances", pairs(2, time.Millisecond)},
	{holders, "a lease of two calls, polled", plainLease(time.Millisecond)},
	{breakers, "redisbreaker, closed", circuit(false)},
	{breakers, "redisbreaker, open", circuit(true)},
}

// exact is told of each admission, and says how many there were beyond burst and rate.
type exact struct {
	began    time.Time
	admitted atomic.Int64
}

func (e *exact) over() float64 {
	return float64(e.admitted.Load()) - burst - rate*time.Since(e.began).Seconds()
}

func limiter(ahead int) begin {
	return func(_ context.Context, client *redis.Client) (work, error) {
		l, err := redislimit.New(client, ratelimit.Config{Name: "api", Rate: rate, Burst: burst},
			redislimit.Options{Timeout: patient, Prefetch: ahead})
		if err != nil {
			return work{}, err
		}
		e := &exact{began: time.Now()}
		return work{over: e.over, end: closing(l), do: func(ctx context.Context, _ int) error {
			err := l.AllowN(ctx, 1)
			if err == nil {
				e.admitted.Add(1)
			} else if errors.Is(err, ratelimit.ErrLimited) {
				return nil // a decision
			}
			return err
		}}, nil
	}
}

func peer(_ context.Context, client *redis.Client) (work, error) {
	l := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: rate, Burst: burst, Period: time.Second}
	e := &exact{began: time.Now()}
	return work{over: e.over, end: none, do: func(ctx context.Context, _ int) error {
		r, err := l.Allow(ctx, "api", limit)
		if err == nil && r.Allowed > 0 {
			e.admitted.Add(1)
		}
		return err
	}}, nil
}

// crowd counts who is inside, and says how many were too many.
type crowd struct{ inside, most atomic.Int64 }

// stay is the time between taking a slot and giving it back.
func (c *crowd) stay(d time.Duration) {
	for n := c.inside.Add(1); ; {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			break
		}
	}
	if d > 0 {
		<-time.After(d)
	}
	c.inside.Add(-1)
}

func (c *crowd) over() float64 { return float64(c.most.Load() - slots) }

// pairs is Acquire and Settle, on instances that wait for one another as processes do.
func pairs(instances int, hold time.Duration) begin {
	return func(_ context.Context, client *redis.Client) (work, error) {
		var all []*redisbulkhead.Bulkhead
		end := func() (err error) {
			for _, b := range all {
				err = errors.Join(err, closing(b)())
			}
			return err
		}
		for range instances {
			b, err := redisbulkhead.New(client, bulkhead.Config{Name: "db", MaxConcurrent: slots, MaxWait: time.Minute},
				redisbulkhead.Options{Timeout: patient})
			if err != nil {
				return work{}, errors.Join(err, end())
			}
			all = append(all, b)
		}
		c := &crowd{}
		return work{over: c.over, end: end, do: func(ctx context.Context, caller int) error {
			p, err := all[caller%instances].Acquire(ctx) // a caller is one process's
			if err != nil {
				return err
			}
			c.stay(hold)
			return p.Settle(ctx, leaf.Outcome{})
		}}, nil
	}
}

// plainLease is what is usually written: a script that takes, one that gives back, and a poll while it is full, every 5 ms as
// the bulkhead's own.
func plainLease(hold time.Duration) begin {
	take := redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + 60000000, ARGV[2])
redis.call('PEXPIRE', KEYS[1], 60000)
return 1`)
	give := redis.NewScript(`return redis.call('ZREM', KEYS[1], ARGV[1])`)
	keys := []string{"plain"}
	return func(_ context.Context, client *redis.Client) (work, error) {
		c := &crowd{}
		return work{over: c.over, end: none, do: func(ctx context.Context, _ int) error {
			token := rand.Text()
			for {
				ok, err := take.Run(ctx, client, keys, slots, token).Int()
				if err != nil {
					return err
				}
				if ok == 1 {
					break
				}
				<-time.After(time.Duration((0.5 + mathrand.Float64()) * float64(5*time.Millisecond)))
			}
			c.stay(hold)
			return give.Run(ctx, client, keys, token).Err()
		}}, nil
	}
}

// circuit is pairs of Acquire and Settle of a success, or refusals.
func circuit(open bool) begin {
	return func(ctx context.Context, client *redis.Client) (work, error) {
		b, err := redisbreaker.New(client, breaker.Config{Name: "bank"}, redisbreaker.Options{Timeout: patient})
		if err == nil && open {
			err = b.ForceOpen(ctx)
		}
		if err != nil {
			return work{}, err
		}
		return work{over: func() float64 { return 0 }, end: closing(b), do: func(ctx context.Context, _ int) error {
			p, err := b.Acquire(ctx)
			switch {
			case err == nil && !open:
				return p.Settle(ctx, leaf.Outcome{})
			case errors.Is(err, breaker.ErrOpen) && open:
				return nil
			case err == nil:
				return errors.New("an open circuit admitted")
			}
			return err
		}}, nil
	}
}

var none = func() error { return nil }

// closing ends a guard.
func closing(g interface{ Close(context.Context) error }) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		return g.Close(ctx)
	}
}
