package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/fairlead/fairlead/leaf"
)

// spy is a guard of somebody's own: it refuses and waits now and then, and keeps the books of its permits.
type spy struct {
	w *world

	mu       sync.Mutex
	rnd      *rand.Rand
	next     uint64
	out      map[uint64]bool
	admitted int
	notRun   int
	runs     int
}

type errSpy struct{}

func (errSpy) Error() string  { return "the spy says no" }
func (errSpy) Rejected() bool { return true }

func (w *world) newSpy() *part {
	s := &spy{w: w, rnd: rand.New(rand.NewPCG(w.rnd.Uint64(), 0)), out: map[uint64]bool{}}
	return &part{guard: s, run: s.run, rest: s.rest}
}

func (s *spy) Acquire(ctx context.Context) (leaf.Permit, error) {
	if ctx.Err() != nil {
		return leaf.Permit{}, errors.Join(ctx.Err(), context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rnd.IntN(20) == 0 && !calm(ctx) {
		return leaf.Permit{}, errSpy{}
	}
	if s.rnd.IntN(50) == 0 && !calm(ctx) {
		panic(hook{})
	}
	s.next++
	s.admitted++
	s.out[s.next] = true
	return leaf.NewPermit(s, s.next), nil
}

func (s *spy) Settle(_ context.Context, token uint64, o leaf.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.out[token] {
		s.w.fail("permit %d was settled twice", token)
	}
	delete(s.out, token)
	if o.Verdict == leaf.NotRun {
		s.notRun++
	}
	if o.Verdict == leaf.Returned && o.Err == nil && s.rnd.IntN(50) == 0 {
		return errors.New("could not record")
	}
	return nil
}

func (s *spy) run(_ context.Context, in bool) {
	if in {
		s.mu.Lock()
		s.runs++
		s.mu.Unlock()
	}
}

// rest: each permit was settled once, and with NotRun where fn did not run.
func (s *spy) rest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.out) != 0 || s.admitted != s.runs+s.notRun {
		return fmt.Errorf("spy: %d admitted, %d run, %d not run, %d still out", s.admitted, s.runs, s.notRun, len(s.out))
	}
	return nil
}
