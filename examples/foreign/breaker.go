package main

import (
	"context"
	"errors"

	"github.com/sony/gobreaker/v2"

	"github.com/fairlead/fairlead/leaf"
)

// Breaker is a two-step breaker as a guard: its first step is Acquire, its second is Settle.
type Breaker struct {
	*gobreaker.TwoStepCircuitBreaker[any]
}

func NewBreaker(s gobreaker.Settings) *Breaker {
	s.IsExcluded = func(err error) bool { return err == errNeutral }
	return &Breaker{gobreaker.NewTwoStepCircuitBreaker[any](s)}
}

func (b *Breaker) Acquire(ctx context.Context) (leaf.Permit, error) {
	if ctx.Err() != nil {
		return leaf.Permit{}, refuse(ctx, nil, 0)
	}
	done, err := b.Allow()
	if err != nil {
		return leaf.Permit{}, refuse(ctx, err, 0)
	}
	return leaf.NewPermit(secondStep(done), 0), nil
}

type secondStep func(error)

var (
	errNeutral = errors.New("says nothing of the other side")
	errFailed  = errors.New("timed out or panicked")
)

// Settle must call the second step for every verdict: what is left out would be a probe that never comes back.
func (done secondStep) Settle(_ context.Context, _ uint64, o leaf.Outcome) error {
	switch o.Verdict {
	case leaf.Returned:
		done(o.Err)
	case leaf.TimedOut, leaf.Panicked:
		done(errFailed)
	default: // NotRun, Ignored; the caller went away, or had not the time
		done(errNeutral)
	}
	return nil
}
