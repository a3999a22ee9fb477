package pipelinetest

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/jonboulle/clockwork"
)

// Scripted is a callback that does what its script says: one [Step] per run, in order, whoever calls. Make one with [Script].
type Scripted[T any] struct {
	tb    testing.TB
	clock clockwork.Clock

	mu    sync.Mutex
	steps []Step // those that are left; the first one's times are what is left of it
	whole int    // runs that the script is for; saturates
	runs  int
}

// Script is a callback with a result of type T that takes steps one after the other:
//
//	bank := pipelinetest.Script[string](t, pipelinetest.Fail(errDown).Times(2), pipelinetest.Return("paid"))
//	receipt, err := pipeline.Do(ctx, p, bank.Do)
//
// A run after the last step fails tb, and returns an error that no retry repeats (retry.Permanent). A script that is not used
// up is no failure: [Scripted.Runs] says how far it came. For a callback without a result, and [Scripted.Run], T is any.
//
// A step that returns no T, waits for a negative time or is taken less than once ends the test at once.
func Script[T any](tb testing.TB, steps ...Step) *Scripted[T] {
	tb.Helper()
	s := &Scripted[T]{tb: tb}
	for i, step := range steps {
		bad := func(want string) {
			tb.Helper()
			tb.Fatalf("pipelinetest: step %d of the script is %v: want %s", i+1, step, want)
		}
		if _, ok := step.value.(T); step.kind == returns && step.value != nil && !ok {
			bad(fmt.Sprintf("a value of type %v, not %T", reflect.TypeFor[T](), step.value))
		}
		if step.after < 0 {
			bad("a time of 0 or more")
		}
		if step.many && step.times < 1 {
			bad("at least 1 time")
		}
		step.times = max(1, step.times)
		s.steps = append(s.steps, step)
		s.whole += min(step.times, math.MaxInt-s.whole)
	}
	return s
}

// On puts the script's waits (After, Late) on clock and returns the script; nil = real time, which is virtual in a bubble.
// It must not be called while the script runs.
func (s *Scripted[T]) On(clock clockwork.Clock) *Scripted[T] {
	s.clock = clock
	return s
}

// Do is the callback, for pipeline.Do and its like.
func (s *Scripted[T]) Do(ctx context.Context) (T, error) {
	s.tb.Helper()
	var zero T
	step, err := s.next()
	if err != nil {
		s.tb.Error(err)
		return zero, err
	}
	v, err := step.run(ctx, s.clock)
	if err != nil || v == nil {
		return zero, err
	}
	return v.(T), nil
}

// Run is the callback without its result, for Pipeline.Run.
func (s *Scripted[T]) Run(ctx context.Context) error {
	s.tb.Helper()
	_, err := s.Do(ctx)
	return err
}

// Runs is how often the callback was called so far.
func (s *Scripted[T]) Runs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

func (s *Scripted[T]) next() (Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	if len(s.steps) == 0 {
		return Step{}, retry.Permanent(fmt.Errorf("pipelinetest: run %d of a script for %d", s.runs, s.whole))
	}
	step := s.steps[0]
	if s.steps[0].times--; s.steps[0].times == 0 {
		s.steps = s.steps[1:]
	}
	return step, nil
}
