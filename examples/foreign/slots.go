package main

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"

	"github.com/fairlead/fairlead/leaf"
)

var errFull = errors.New("all slots are taken")

// Slots is golang.org/x/sync/semaphore as a guard: a bulkhead.
type Slots struct {
	sem   *semaphore.Weighted
	waits bool // for a slot, as long as the caller does
}

func (s *Slots) Acquire(ctx context.Context) (leaf.Permit, error) {
	if s.waits && s.sem.Acquire(ctx, 1) == nil || !s.waits && ctx.Err() == nil && s.sem.TryAcquire(1) {
		return leaf.NewPermit(s, 0), nil
	}
	return leaf.Permit{}, refuse(ctx, errFull, 0)
}

// Settle frees the slot, however the call ended.
func (s *Slots) Settle(context.Context, uint64, leaf.Outcome) error {
	s.sem.Release(1)
	return nil
}
