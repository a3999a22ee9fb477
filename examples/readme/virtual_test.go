package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

func TestAnHourOfBackoffTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{
			MaxAttempts: 2, Backoff: retry.Constant(time.Hour), MaxDelay: time.Hour, Jitter: retry.None,
		})).MustBuild() // inside the bubble, on its time from the beginning
		began := time.Now()
		err := p.Run(t.Context(), func(context.Context) error { return errors.New("down") })
		if took := time.Since(began); err == nil || took != time.Hour {
			t.Fatalf("took %v: %v", took, err)
		}
	})
}

func TestTheCircuitIsProbedAfterItsOpenTime(t *testing.T) {
	clock := clockwork.NewFakeClock()
	bank := breaker.MustNew(breaker.Config{Consecutive: 1, OpenFor: 30 * time.Second, Clock: clock})
	p := pipeline.For("billing").Breaker(bank).MustBuild()
	_ = p.Run(t.Context(), func(context.Context) error { return errors.New("down") })
	clock.Advance(30 * time.Second)
	if state := bank.State(); state != breaker.HalfOpen {
		t.Fatalf("the circuit is %v", state)
	}
}

func TestABackoffOnAFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, runs := clockwork.NewFakeClock(), 0
		p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{
			MaxAttempts: 2, Backoff: retry.Constant(time.Hour), MaxDelay: time.Hour, Jitter: retry.None, Clock: clock,
		})).MustBuild()
		go func() {
			_ = p.Run(t.Context(), func(context.Context) error { runs++; return errors.New("down") })
		}()
		synctest.Wait() // until the call can go no further: it sleeps
		clock.Advance(time.Hour)
		synctest.Wait()
		if runs != 2 {
			t.Fatalf("fn ran %d times", runs)
		}
	})
}
