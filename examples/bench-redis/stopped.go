package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fairlead/fairlead/examples/redisserver"
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

// budget is the guards' default for a store call; grace is the scheduler's.
const (
	budget = 50 * time.Millisecond
	grace  = 20 * time.Millisecond
)

// meanwhile is how often one caller calls while Redis is stopped: often, but leaving the machine its time.
const meanwhile = 2 * time.Millisecond

// call times one call of a guard; its error does not matter, only how long it took.
type call func(what func())

// outage is one guard while Redis is stopped.
type outage struct {
	name   string
	budget time.Duration // of a single call; 0 = none is promised
	begin  func(ctx context.Context, client *redis.Client) (do func(context.Context, call), end func() error, err error)
}

// silence is what became of its calls.
type silence struct {
	outage
	calls   int
	p99     time.Duration
	longest time.Duration
	stall   time.Duration // how late a timer was meanwhile, at most: the machine's own share of longest
}

var stopped = []outage{
	{"redislimit, AllowN", budget, func(_ context.Context, c *redis.Client) (func(context.Context, call), func() error, error) {
		l, err := redislimit.New(c, ratelimit.Config{Name: "api", Rate: 1000}, redislimit.Options{})
		return func(ctx context.Context, timed call) {
			timed(func() { _ = l.AllowN(ctx, 1) })
		}, ended(l, err), err
	}},
	{"redisbulkhead, Acquire and Settle", budget, func(_ context.Context, c *redis.Client) (func(context.Context, call), func() error, error) {
		b, err := redisbulkhead.New(c, bulkhead.Config{Name: "db", MaxConcurrent: callers}, redisbulkhead.Options{})
		return acquireAndSettle(b, leaf.Outcome{}), ended(b, err), err
	}},
	{"redisbreaker, closed, Acquire and Settle", budget, func(_ context.Context, c *redis.Client) (func(context.Context, call), func() error, error) {
		b, err := redisbreaker.New(c, breaker.Config{Name: "bank"}, redisbreaker.Options{})
		return acquireAndSettle(b, leaf.Outcome{}), ended(b, err), err
	}},
	{"redisbreaker, probing, Acquire and Settle", budget, func(_ context.Context, c *redis.Client) (func(context.Context, call), func() error, error) {
		b, err := redisbreaker.New(c, breaker.Config{Name: "bank", Consecutive: 1, OpenFor: 5 * time.Millisecond}, redisbreaker.Options{})
		return acquireAndSettle(b, leaf.Outcome{Err: errors.New("down")}), ended(b, err), err
	}},
	{"redis_rate v10, Allow", 0, func(_ context.Context, c *redis.Client) (func(context.Context, call), func() error, error) {
		l := redis_rate.NewLimiter(c)
		return func(ctx context.Context, timed call) {
			timed(func() { _, _ = l.Allow(ctx, "api", redis_rate.PerSecond(1000)) })
		}, none, nil
	}},
}

func ended(g interface{ Close(context.Context) error }, err error) func() error {
	if err != nil {
		return none
	}
	return closing(g)
}

func acquireAndSettle(g leaf.Guard, o leaf.Outcome) func(context.Context, call) {
	return func(ctx context.Context, timed call) {
		var p leaf.Permit
		timed(func() { p, _ = g.Acquire(ctx) })
		timed(func() { _ = p.Settle(ctx, o) })
	}
}

// measure stops a server of its own under the callers.
func (o outage) measure(ctx context.Context, stop time.Duration) (s silence, err error) {
	server, err := redisserver.Start(ctx)
	if err != nil {
		return s, err
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	do, end, err := o.begin(ctx, client)
	if err != nil {
		return s, err
	}
	calling, enough := context.WithCancel(ctx)
	all := &histogram{}
	var counting bool
	var mu sync.Mutex
	timed := func(what func()) {
		began := time.Now()
		what()
		took := time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		if counting {
			all.add(took)
		}
	}
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for calling.Err() == nil {
				do(context.WithoutCancel(ctx), timed) // the end of the measurement cuts no call short
				<-time.After(meanwhile)
			}
		})
	}
	pause := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	pause(300 * time.Millisecond)
	mu.Lock()
	counting = true
	mu.Unlock()
	var stall time.Duration
	running.Go(func() {
		for calling.Err() == nil {
			began := time.Now()
			<-time.After(meanwhile)
			stall = max(stall, time.Since(began)-meanwhile)
		}
	})
	err = server.Pause()
	pause(stop)
	err = errors.Join(err, server.Resume())
	pause(300 * time.Millisecond)
	enough()
	running.Wait()
	err = errors.Join(err, end())
	return silence{outage: o, calls: all.n, p99: all.quantile(0.99), longest: all.longest, stall: stall}, err
}
