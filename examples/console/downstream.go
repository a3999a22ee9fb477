package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

// Fault is what is wrong with a downstream.
type Fault string

// Faults, and what they do.
const (
	Healthy  Fault = "healthy"
	Outage   Fault = "outage"    // every call fails at once
	BrownOut Fault = "brown-out" // two of five fail, and all are slow
	Slow     Fault = "slow"      // all take twenty times as long
	Throttle Fault = "429"       // it asks to be left alone for two seconds
	Flapping Fault = "flapping"  // an outage every other six seconds
)

var faults = []Fault{Healthy, Outage, BrownOut, Slow, Throttle, Flapping}

// Downstream is a service that somebody else runs. It takes some time to answer, and fails as it is told to.
type Downstream struct {
	Name   string
	Usual  time.Duration // half of the calls take longer
	fault  atomic.Value  // Fault
	opened time.Time
}

func newDownstream(name string, usual time.Duration) *Downstream {
	d := &Downstream{Name: name, Usual: usual, opened: time.Now()}
	d.fault.Store(Healthy)
	return d
}

// Fault is what is wrong now.
func (d *Downstream) Fault() Fault { return d.fault.Load().(Fault) }

// Break makes f wrong from now on.
func (d *Downstream) Break(f Fault) { d.fault.Store(f) }

// Call is one request.
func (d *Downstream) Call(ctx context.Context) error {
	took := time.Duration(float64(d.Usual) * (0.5 + rand.ExpFloat64()*0.7))
	status := 200
	switch d.Fault() {
	case Outage:
		took, status = time.Millisecond, 503
	case BrownOut:
		took *= 3
		if rand.Float64() < 0.4 {
			status = 500
		}
	case Slow:
		took *= 20
	case Throttle:
		took, status = 2*time.Millisecond, 429
	case Flapping:
		if time.Since(d.opened)/(6*time.Second)%2 == 1 {
			took, status = time.Millisecond, 503
		}
	default:
		if rand.Float64() < 0.004 { // nobody is perfect
			status = 502
		}
	}
	timer := time.NewTimer(took)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	if status != 200 {
		return &StatusError{Service: d.Name, Status: status}
	}
	return nil
}

// StatusError is an answer that is no success.
type StatusError struct {
	Service string
	Status  int
}

func (e *StatusError) Error() string { return fmt.Sprintf("%s answered %d", e.Service, e.Status) }

// RetryAfter is what a 429 asks for.
func (e *StatusError) RetryAfter() (time.Duration, bool) { return 2 * time.Second, e.Status == 429 }

// Judge keeps a 429 from the breaker: who says so is well.
func (e *StatusError) Judge(o leaf.Outcome) leaf.Outcome {
	if o.Verdict == leaf.Returned && e.Status == 429 {
		o.Verdict = leaf.Ignored
	}
	return o
}
