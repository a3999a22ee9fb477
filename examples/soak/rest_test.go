package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// bubbled says that time is virtual now.
func (w *world) bubbled() bool { return time.Now().Year() == 2000 }

// meddle is what happens to guards, plans and clocks while callers use them.
func (w *world) meddle(rnd *rand.Rand, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(1 + rnd.Int64N(int64(8*w.unit)))):
		}
		s := []*stage{w.inner, w.outer}[rnd.IntN(2)]
		switch n := rnd.IntN(10); {
		case n < 3 && w.clock != nil:
			w.jump(rnd)
		case n < 6 && len(s.parts) > 0:
			if p := s.parts[rnd.IntN(len(s.parts))]; p.meddle != nil {
				p.meddle(context.Background(), rnd)
			}
		case n < 8:
			t := s.any(rnd)
			if len(t.plans) == 0 { // its plans come from a configuration
				continue
			}
			if err := t.Update(t.plans[rnd.IntN(len(t.plans))]); err != nil {
				w.fail("update: %v", err)
			}
		default:
			for _, b := range s.budgets {
				if bad := b.check(false); bad != "" {
					w.fail("%s", bad)
				}
			}
		}
		if s.meddle != nil && rnd.IntN(3) == 0 {
			s.meddle(rnd)
		}
	}
}

// jump sets the clock: by minutes, or to another time.
func (w *world) jump(rnd *rand.Rand) {
	d := time.Duration(rnd.Int64N(int64(20*time.Minute))) - 10*time.Minute
	if rnd.IntN(4) == 0 {
		d = 30 * year
		if w.clock.offset.Load() > int64(15*year) {
			d = -d
		}
	}
	w.span.jump(d)
	w.clock.offset.Add(int64(d))
}

// settle waits for what callbacks of detached calls still hold, and looks at every guard at rest.
func (w *world) settle() {
	for _, s := range []*stage{w.inner, w.outer} {
		for _, p := range s.parts {
			// A callback that was given up on may itself have a call of an inner pipeline under way.
			if p.atOnce && (s == w.outer || w.inside.Load() == 0) {
				if err := p.rest(); err != nil {
					w.fail("when all were back: %v", err)
				}
			}
		}
	}
	for patience := 200; ; patience-- {
		<-time.After(10 * w.unit)
		if w.bubbled() {
			synctest.Wait() // a callback may have been left to itself before it began
		}
		bad := w.unrest()
		if len(bad) == 0 {
			return
		}
		if patience == 0 {
			for _, b := range bad {
				w.fail("at rest: %s", b)
			}
			return
		}
	}
}

func (w *world) unrest() (bad []string) {
	if n := w.inside.Load(); n > 0 {
		bad = append(bad, fmt.Sprintf("%d callbacks still run", n))
	}
	for _, s := range []*stage{w.inner, w.outer} {
		for _, p := range s.parts {
			if p.rest == nil {
				continue
			}
			if err := p.rest(); err != nil {
				bad = append(bad, s.name+", "+p.kind+": "+err.Error())
			}
		}
		for _, b := range s.budgets {
			if what := b.check(true); what != "" {
				bad = append(bad, s.name+": "+what)
			}
		}
	}
	return bad
}

// recover: when the faults are over, every pipeline serves again, in the time that its guards need at most.
func (w *world) recover() {
	ctx := context.WithValue(context.Background(), calmly{}, true)
	for _, s := range []*stage{w.inner, w.outer} {
		for _, p := range s.parts {
			if p.after != nil {
				p.after(ctx)
			}
		}
		for _, t := range s.targets {
			w.serves(ctx, s, t)
		}
	}
	if bad := w.unrest(); len(bad) > 0 {
		w.fail("after the recovery: %v", bad)
	}
}

func (w *world) serves(ctx context.Context, s *stage, t *target) {
	patience := w.span.lag() + 10*w.unit
	if !w.bubbled() {
		patience += 5 * time.Second
	}
	for _, p := range t.parts {
		if p.never {
			return
		}
		patience += 2 * p.revive
	}
	began, pauses := time.Now(), w.unit
	for {
		c := &call{stage: s, target: t, rnd: rand.New(rand.NewPCG(w.seed, 1))}
		if t.pool != nil {
			t.pool.sent.calls.Add(1)
		}
		_, err := pipeline.Do(context.WithValue(ctx, callKey{}, c), t.Pipeline, c.fn, pipeline.Declare(retry.ReadOnly("recovery", time.Hour)))
		if err == nil {
			return
		}
		if passed := time.Since(began); passed > patience {
			w.fail("%v does not serve %v after the faults: %v", t, passed, err)
			return
		}
		wait, _ := rejection.RetryAfter(err)
		<-time.After(max(wait, pauses))
		pauses = min(2*pauses, patience/4+1)
	}
}
