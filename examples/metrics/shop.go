package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// shop charges through a pipeline.
type shop struct {
	bank   bank
	charge *pipeline.Pipeline
}

// newShop makes the pipeline as any program does, and has it watched: that one line is all that its metrics need. Pipelines of a
// configuration are watched all at once, and again when a reload brought others:
//
//	var reg *registry.Registry
//	reg, err = registry.LoadYAML(f, registry.WithOnReload(func(error) { _ = t.WatchAll(reg) }))
//	err = t.WatchAll(reg)
func newShop(t *telemetry) (*shop, error) {
	s := &shop{charge: pipeline.For("billing").
		Retry(retry.MustNew(retry.Config{MaxAttempts: 2, Backoff: retry.Constant(time.Millisecond)})).
		Breaker(breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 5, OpenFor: 5 * time.Second})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "bank", MaxConcurrent: 8})).MustBuild()}
	_, err := t.Watch(s.charge)
	return s, err
}

func (s *shop) buy(ctx context.Context) error { return s.charge.Run(ctx, s.bank.pay) }

// bank answers at once, or not at all.
type bank struct{ down atomic.Bool }

var errDown = errors.New("bank: 503")

func (b *bank) pay(context.Context) error {
	if b.down.Load() {
		return errDown
	}
	return nil
}
