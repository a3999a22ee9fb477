package main

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/breaker/redisbreaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/bulkhead/redisbulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/ratelimit/redislimit"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/redis/go-redis/v9"
)

// What the fleet may do to the bank, in all its processes together.
const (
	processes = 3
	slots     = 6  // calls at once
	rate      = 40 // calls per second
	burst     = 20
	lease     = 3 * time.Second        // how long a slot outlives a process that died
	openFor   = 800 * time.Millisecond // before an open circuit is probed
	queueing  = 50 * time.Millisecond  // for a slot
)

// shared is what each process builds. Nothing in it knows of the others: the names are what they share.
type shared struct {
	client  *redis.Client
	limit   *redislimit.Limiter
	slots   *redisbulkhead.Bulkhead
	circuit *redisbreaker.Breaker
	charge  *pipeline.Pipeline
}

// news is what a process tells its operator: its circuit's changes, and which guard has lost or found its store.
type news struct {
	circuit func(breaker.Change)
	store   func(guard string, e leaf.StoreEvent)
}

// share builds the pipeline. The bulkhead's Instances and the limiter's are for an outage alone: then each process keeps to a
// third of the limit, by itself.
func share(s settings, n news) (*shared, error) {
	on := func(guard string) leaf.OnStore {
		return func(_ context.Context, e leaf.StoreEvent) { n.store(guard, e) }
	}
	g := &shared{client: redis.NewClient(&redis.Options{Addr: s.Redis})}
	var errs [4]error
	g.limit, errs[0] = redislimit.New(g.client,
		ratelimit.Config{Name: "bank", Rate: rate, Burst: burst},
		redislimit.Options{Prefix: s.Prefix, Timeout: s.Timeout, Instances: processes, OnStore: on("limit")})
	g.slots, errs[1] = redisbulkhead.New(g.client,
		bulkhead.Config{Name: "bank", MaxConcurrent: slots, MaxWait: queueing},
		redisbulkhead.Options{Prefix: s.Prefix, Timeout: s.Timeout, Instances: processes, LeaseTTL: lease, OnStore: on("bulkhead")})
	g.circuit, errs[2] = redisbreaker.New(g.client,
		breaker.Config{Name: "bank", Window: breaker.Count(20), OpenFor: openFor, OnChange: n.circuit},
		redisbreaker.Options{Prefix: s.Prefix, Timeout: s.Timeout, MinReporters: 2, IdleTTL: time.Minute, OnStore: on("breaker")})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, g.client.Close())
	}
	g.charge, errs[3] = pipeline.For("charge").
		Timeout(timeout.MustNew(timeout.Config{Limit: 2500 * time.Millisecond})).
		Breaker(g.circuit).
		RateLimit(g.limit).
		Bulkhead(g.slots).
		AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 2 * time.Second})).
		Build()
	if errs[3] != nil {
		return nil, errors.Join(errs[3], g.close())
	}
	return g, nil
}

// close tells the store what it has not heard yet, and ends every goroutine.
func (g *shared) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return errors.Join(g.circuit.Close(ctx), g.slots.Close(ctx), g.limit.Close(ctx), g.client.Close())
}
