package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/breaker/redisbreaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/bulkhead/redisbulkhead"
	"github.com/fairlead/fairlead/pipeline"
)

func shared(client redis.UniversalClient) (p *pipeline.Pipeline, end func(context.Context) error, err error) {
	bank, badBreaker := redisbreaker.New(client, breaker.Config{Name: "bank", OpenFor: 30 * time.Second},
		redisbreaker.Options{MinReporters: 2}) // one sick process cannot open it for all
	slots, badBulkhead := redisbulkhead.New(client, bulkhead.Config{Name: "bank", MaxConcurrent: 32},
		redisbulkhead.Options{Instances: 4}) // while Redis is away each of four processes keeps to 8
	if err := errors.Join(badBreaker, badBulkhead); err != nil {
		return nil, nil, err
	}
	p, err = pipeline.For("billing").Breaker(bank).Bulkhead(slots).Build()
	return p, func(ctx context.Context) error { return errors.Join(bank.Close(ctx), slots.Close(ctx)) }, err
}

func takeOut(ctx context.Context, client redis.UniversalClient) error {
	bank, err := redisbreaker.New(client, breaker.Config{Name: "bank"}, redisbreaker.Options{})
	if err != nil {
		return err
	}
	return errors.Join(bank.ForceOpen(ctx), bank.Close(ctx)) // for the whole fleet, until Auto
}
