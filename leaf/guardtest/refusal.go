package guardtest

import "github.com/fairlead/fairlead/leaf"

func (s *suite) refusalSaysSo() {
	g := s.refusing()
	if g == nil {
		return
	}
	for _, w := range ways(g) {
		c := s.prompt(s.Context(), w.ask, w.name+" of a refusing guard")
		if c.err == nil {
			c.settle(leaf.NotRun)
		}
		s.wantRefusal(c.err, w.name+" of a refusing guard")
		s.wantZero(c, w.name+" of a refusing guard")
	}
}

// refusalTakesNothing: after any number of refusals one freed place is one place.
func (s *suite) refusalTakesNothing() {
	if s.cfg.Capacity == 0 {
		return
	}
	g := s.cfg.New(s)
	calls := s.fill(g)
	for _, w := range ways(g) {
		for range s.cfg.Rounds {
			c := s.prompt(s.Context(), w.ask, w.name+" of a full guard")
			if c.err == nil {
				c.settle(leaf.NotRun)
			}
			s.wantRefusal(c.err, w.name+" of a full guard")
		}
	}
	calls[0].settle(leaf.NotRun)
	calls[0] = s.admitted(g.Acquire, "Acquire after many refusals and one NotRun")
	s.full(g, "many refusals, one NotRun and one Acquire")
	settleAll(calls, leaf.NotRun)
	s.intact(g, "many refusals")
	s.idle(g)
}

func (s *suite) tryNeverWaits() {
	for _, k := range s.kinds() {
		g := k.fresh(s)
		t, ok := g.(leaf.Trier)
		if !ok || s.cfg.Capacity == 0 {
			continue
		}
		calls := s.fill(g)
		for range 3 {
			c := s.prompt(s.Context(), t.TryAcquire, "TryAcquire of "+k.name+", full,")
			if c.err == nil {
				c.settle(leaf.NotRun)
			}
			s.wantRefusal(c.err, "TryAcquire of "+k.name+", full")
			s.wantZero(c, "TryAcquire of "+k.name+", full")
		}
		settleAll(calls, leaf.NotRun)
		s.intact(g, "TryAcquire in vain")
	}
}
