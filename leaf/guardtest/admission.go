package guardtest

import (
	"context"
	"fmt"
	"runtime"

	"github.com/fairlead/fairlead/leaf"
)

func (s *suite) admits() {
	for _, k := range s.kinds() {
		for _, w := range ways(k.fresh(s)) {
			c := s.admitted(w.ask, w.name+" of "+k.name+", fresh")
			c.settle(leaf.NotRun)
		}
	}
}

// settlesOnce: a guard takes every verdict, and a second Settle of the same permit is nothing.
func (s *suite) settlesOnce() {
	for _, v := range verdicts {
		for i := range ways(s.cfg.New(s)) {
			g := s.cfg.New(s)
			w := ways(g)[i]
			c := s.admitted(w.ask, w.name)
			c.settle(v)
			s.wantZero(c, fmt.Sprintf("Settle(%v)", v))
			if err := c.permit.Settle(context.Background(), outcome(v)); err != nil {
				s.Fatalf("the second Settle(%v) returned %q, want nil", v, err)
			}
			if v == leaf.NotRun || s.cfg.Slots {
				s.intact(g, fmt.Sprintf("Settle(%v), twice", v))
			}
		}
	}
}

func (s *suite) capacityIsExact() {
	for _, k := range s.kinds() {
		s.intact(k.fresh(s), "making "+k.name)
	}
}

func (s *suite) notRunGivesBack() {
	if s.cfg.Capacity == 0 {
		// Nothing can be seen to come back; what can be seen is that nothing runs out.
		g := s.cfg.New(s)
		for range s.cfg.Rounds {
			s.admitted(g.Acquire, "Acquire after many NotRun").settle(leaf.NotRun)
		}
		return
	}
	for _, k := range s.kinds() {
		g := k.fresh(s)
		for round := range 3 {
			settleAll(s.fill(g), leaf.NotRun)
			s.intact(g, fmt.Sprintf("settling %s with NotRun, round %d", k.name, round+1))
		}
		// One at a time, in another order than they came: exactly one place each.
		calls := s.fill(g)
		for i := range calls {
			calls[len(calls)-1-i].settle(leaf.NotRun)
			calls[len(calls)-1-i] = s.admitted(g.Acquire, "Acquire after one NotRun")
			s.full(g, "one NotRun and one Acquire")
		}
		settleAll(calls, leaf.NotRun)
	}
}

func (s *suite) slotComesBack() {
	if !s.cfg.Slots {
		return
	}
	for _, k := range s.kinds() {
		g := k.fresh(s)
		for _, v := range verdicts {
			settleAll(s.fill(g), v)
			s.intact(g, fmt.Sprintf("settling %s with %v", k.name, v))
		}
	}
}

// doneSettles: the caller may be gone when its call is settled.
func (s *suite) doneSettles() {
	for _, k := range s.kinds() {
		g := k.fresh(s)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errWork)
		calls := s.fill(g)
		if s.cfg.Capacity == 0 {
			calls = append(calls, s.admitted(g.Acquire, "Acquire"))
		}
		settled := make(chan struct{})
		go func() { // by another goroutine than the one that asked, too
			defer close(settled)
			for _, c := range calls {
				_ = c.permit.Settle(ctx, outcome(leaf.NotRun))
			}
		}()
		if !within(settled, s.cfg.Patience) {
			s.Fatalf("Settle of %s with a done ctx did not return within %v", k.name, s.cfg.Patience)
		}
		s.intact(g, "settling "+k.name+" with a done ctx")
	}
}

// panicSettles runs callbacks that do not return behind leaf.Do: fn's panic stays fn's, and a slot comes back.
func (s *suite) panicSettles() {
	ends := map[string]func(){"a panic": func() { panic(errWork) }, "runtime.Goexit": runtime.Goexit}
	for _, k := range s.kinds() {
		for what, end := range ends {
			g := k.fresh(s)
			times := 1
			if s.cfg.Slots {
				times = s.cfg.Capacity + 1 // with one lost slot each, the last would find none
			}
			for range times {
				s.diesIn(g, what, end)
			}
			if s.cfg.Slots {
				s.intact(g, what+" behind "+k.name)
			}
		}
	}
}

func (s *suite) diesIn(g leaf.Guard, what string, end func()) {
	s.Helper()
	var (
		ran, returned bool
		err           error
		recovered     any
		done          = make(chan struct{})
	)
	go func() {
		defer close(done)
		defer func() { recovered = recover() }()
		_, err = leaf.Do(context.Background(), g, func(context.Context) (int, error) {
			ran = true
			end()
			return 0, nil
		})
		returned = true
	}()
	switch {
	case !within(done, s.cfg.Patience):
		s.Fatalf("leaf.Do with %s did not end within %v", what, s.cfg.Patience)
	case !ran:
		s.Fatalf("leaf.Do with %s: not admitted: %v, recovered %v", what, err, recovered)
	case returned:
		s.Fatalf("leaf.Do with %s returned, want it to go on unwinding", what)
	case recovered != nil && recovered != error(errWork):
		s.Fatalf("leaf.Do with %s: it unwinds with %v instead", what, recovered)
	case recovered == nil && what == "a panic":
		s.Fatalf("leaf.Do with %s: the panic is gone", what)
	}
}
