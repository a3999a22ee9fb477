package guardtest

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

var errCause = errors.New("the caller's own cause")

// doneContexts is every way to be done: with and without a cause, cancelled and expired.
func doneContexts() map[string]context.Context {
	plain, cancel := context.WithCancel(context.Background())
	cancel()
	caused, cancelCause := context.WithCancelCause(context.Background())
	cancelCause(errCause)
	past := time.Now().Add(-time.Hour)
	expired, cancel := context.WithDeadline(context.Background(), past)
	cancel()
	expiredCause, cancel := context.WithDeadlineCause(context.Background(), past, errCause)
	cancel()
	return map[string]context.Context{
		"cancelled": plain, "cancelled with a cause": caused, "expired": expired, "expired with a cause": expiredCause,
	}
}

// doneTakesNothing asks with a done ctx often enough that one place lost each time would be all of them.
func (s *suite) doneTakesNothing() {
	for _, k := range s.kinds() {
		g := k.fresh(s)
		for _, w := range ways(g) {
			for how, ctx := range doneContexts() {
				what := w.name + " of " + k.name + ", ctx " + how
				for range s.cfg.Capacity + 1 {
					c := s.prompt(ctx, w.ask, what)
					if c.err == nil {
						c.settle(leaf.NotRun)
					}
					s.wantCtx(ctx, c.err, what)
					s.wantZero(c, what)
				}
			}
		}
		s.intact(g, "many calls with a done ctx")
	}
}

// doneAtRefusing: whether a guard that refuses looks at ctx or at itself first is its own business.
func (s *suite) doneAtRefusing() {
	g := s.refusing()
	if g == nil {
		return
	}
	for _, w := range ways(g) {
		for how, ctx := range doneContexts() {
			what := w.name + " of a refusing guard, ctx " + how
			c := s.prompt(ctx, w.ask, what)
			if c.err == nil {
				c.settle(leaf.NotRun)
				s.Fatalf("%s: admitted", what)
			}
			s.wantZero(c, what)
		}
	}
}

// waiter is a call that waits in a full guard.
type waiter struct {
	*call
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (s *suite) wait(g leaf.Guard) waiter {
	ctx, cancel := context.WithCancelCause(context.Background())
	w := watch(ctx)
	c := start(w, g.Acquire)
	s.Cleanup(func() { // for a check that failed half way
		cancel(errCause)
		within(c.done, s.cfg.Patience)
	})
	w.waits(c)
	return waiter{c, ctx, cancel}
}

// fullWaiting makes a waiting guard whose places are all taken.
func (s *suite) fullWaiting() (leaf.Guard, []*call) {
	s.Helper()
	g := s.cfg.Waiting(s)
	held := s.fill(g)
	s.Cleanup(func() { settleAll(held, leaf.NotRun) }) // those that a failed check left
	return g, held
}

func (s *suite) waiterGetsPlace() {
	if s.cfg.Waiting == nil || !s.cfg.Slots {
		return
	}
	for _, v := range verdicts {
		g, held := s.fullWaiting()
		w := s.wait(g)
		select {
		case <-w.done:
			w.settle(leaf.NotRun)
			s.Fatalf("Acquire of a full guard that waits returned at once: %v", w.err)
		default:
		}
		held[0].settle(v)
		s.ended(w.call, func() { w.cancel(errCause) }, "the waiting Acquire, after a place was freed,")
		w.cancel(nil)
		if w.err != nil {
			s.Fatalf("the waiting Acquire got %q after Settle(%v), want an admission", w.err, v)
		}
		w.settle(v)
		settleAll(held[1:], v)
		s.intact(g, "a wait that was granted")
	}
}

func (s *suite) cancelledWait() {
	if s.cfg.Waiting == nil {
		return
	}
	g, held := s.fullWaiting()
	w := s.wait(g)
	w.cancel(errCause)
	s.ended(w.call, func() {}, "the waiting Acquire, cancelled,")
	s.wantCtx(w.ctx, w.err, "a cancelled wait")
	s.wantZero(w.call, "a cancelled wait")

	// A deadline ends a wait, or is refused where it is known to come too early.
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, errCause)
	defer cancel()
	c := start(ctx, g.Acquire)
	s.ended(c, cancel, "the waiting Acquire, expired,")
	s.wantZero(c, "an expired wait")
	if ctx.Err() != nil && c.err != nil && errors.Is(c.err, ctx.Err()) {
		s.wantCtx(ctx, c.err, "an expired wait")
	} else {
		s.wantRefusal(c.err, "a wait that does not fit")
	}
	settleAll(held, leaf.NotRun)
	s.intact(g, "a cancelled and an expired wait")
}

func (s *suite) cancelledWaitTakesNothing() {
	if s.cfg.Waiting == nil {
		return
	}
	g, held := s.fullWaiting()
	var waiting []waiter
	for range s.cfg.Capacity + 8 {
		waiting = append(waiting, s.wait(g))
	}
	for i := range waiting { // from the middle outwards: a queue's head, tail and inside
		w := waiting[(i+len(waiting)/2)%len(waiting)]
		w.cancel(errCause)
		s.ended(w.call, func() {}, "one of many waiting Acquires, cancelled,")
		s.wantCtx(w.ctx, w.err, "one of many cancelled waits")
	}
	s.full(g, "many cancelled waits")
	settleAll(held, leaf.NotRun)
	s.intact(g, "many cancelled waits")
	s.idle(g)
}

// grantRacesWithLeaving: a place that is freed for a waiter that is just leaving goes to somebody, or back.
func (s *suite) grantRacesWithLeaving() {
	if s.cfg.Waiting == nil {
		return
	}
	g := s.cfg.Waiting(s)
	for round := range s.cfg.Rounds {
		held := s.fill(g)
		w := s.wait(g)
		switch round % 3 {
		case 0: // the grant finds the waiter awake, but not gone yet
			w.cancel(errCause)
			settleAll(held, leaf.NotRun)
		case 1: // the waiter wakes to both
			settleAll(held, leaf.NotRun)
			w.cancel(errCause)
		case 2:
			go w.cancel(errCause)
			settleAll(held, leaf.NotRun)
		}
		s.ended(w.call, func() {}, "the waiting Acquire, cancelled while a place was freed,")
		if w.err != nil {
			s.wantCtx(w.ctx, w.err, "a wait cancelled while a place was freed")
			s.wantZero(w.call, "a wait cancelled while a place was freed")
		} else {
			w.settle(leaf.NotRun)
		}
	}
	s.intact(g, "races of a grant with leaving")
	s.idle(g)
}
