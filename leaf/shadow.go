package leaf

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/ended"
)

// Shadow lets g observe only: it decides, counts and is settled as usual, but refuses nobody and never waits.
// report (may be nil) is told each refusal that would have been given. A ctx that is done is still ctx's error.
// A call that g refused settles nothing in g.
//
// What is not a refusal but would have kept the call from running all the same (a store's failure, a Keyed make's error) is
// reported, too. report runs on the caller's goroutine, before the callback, with nothing held. A nil g is an error of every Acquire.
//
// The result is a [Trier] (it never waits), passes hints on, and is a [Leaser], [Occupier] and [Timed] as g is, so that g sees
// what it would see without the Shadow; an [Inspector] only where g is one. It is no [Peeker]: what refuses nobody has
// nothing to warn of.
func Shadow(g Trier, report func(ctx context.Context, refusal error)) Guard {
	s := &shadow{report: report}
	if !check.Nil(g) { // a typed nil must not be asked for anything, not even whether it occupies
		s.g = g
	}
	if i, ok := s.g.(Inspector); ok {
		return inspectedShadow{s, i}
	}
	return s
}

type shadow struct {
	g      Trier
	report func(context.Context, error)
}

var errShadowNil = errors.New("leaf: Shadow's g is nil: want a guard")

func (s *shadow) Acquire(ctx context.Context) (Permit, error) {
	if s.g == nil {
		return Permit{}, errShadowNil
	}
	if err := ended.Err(ctx); err != nil {
		return Permit{}, err
	}
	p, err := s.g.TryAcquire(ctx)
	if err == nil {
		return NewPermit(p.settler, p.token), nil
	}
	if ended := ended.Err(ctx); ended != nil {
		return Permit{}, ended
	}
	if s.report != nil {
		s.report(ctx, err)
	}
	return Permit{}, nil
}

// Guarded lets Build look through the Shadow at g's clock.
func (s *shadow) Guarded() Guard {
	g, _ := s.g.(Guard)
	return g
}

func (s *shadow) TryAcquire(ctx context.Context) (Permit, error) { return s.Acquire(ctx) }

func (s *shadow) Hint(ctx context.Context, wait time.Duration) {
	if h, ok := s.g.(Hinter); ok {
		h.Hint(ctx, wait)
	}
}

func (s *shadow) Lease() time.Duration {
	if l, ok := s.g.(Leaser); ok {
		return l.Lease()
	}
	return 0
}

func (s *shadow) Occupies() bool {
	o, ok := s.g.(Occupier)
	return ok && o.Occupies()
}

func (s *shadow) WantsTook() bool {
	t, ok := s.g.(Timed)
	return ok && t.WantsTook()
}

type inspectedShadow struct {
	*shadow
	Inspector
}
