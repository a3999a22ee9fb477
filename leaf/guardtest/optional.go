package guardtest

import (
	"context"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/leaf"
)

// peekIsPure: any number of peeks takes nothing, frees nothing and changes no gauge.
func (s *suite) peekIsPure() {
	for _, k := range s.kinds() {
		g := k.fresh(s)
		p, ok := g.(leaf.Peeker)
		if !ok {
			return
		}
		before := inspect(g)
		for range s.cfg.Capacity + s.cfg.Rounds {
			if err := p.Peek(s.Context()); err != nil {
				s.Fatalf("Peek of %s, fresh: got %q, want nil", k.name, err)
			}
		}
		s.unchanged(before, inspect(g), "Peek of "+k.name)
		s.intact(g, "many peeks")
	}
}

// peekTells: nil before an admission, a refusal before a refusal; a done ctx is not its concern.
func (s *suite) peekTells() {
	g := s.refusing()
	if g == nil {
		return
	}
	p, ok := g.(leaf.Peeker)
	if !ok {
		return
	}
	before := inspect(g)
	for range s.cfg.Rounds {
		s.wantRefusal(p.Peek(s.Context()), "Peek of a refusing guard")
	}
	s.unchanged(before, inspect(g), "Peek of a refusing guard")
	c := s.prompt(s.Context(), g.Acquire, "Acquire after many peeks")
	if c.err == nil {
		c.settle(leaf.NotRun)
	}
	s.wantRefusal(c.err, "Acquire after a Peek that refused")
}

func (s *suite) emptyHint() {
	g := s.cfg.New(s)
	h, ok := g.(leaf.Hinter)
	if !ok {
		return
	}
	before := inspect(g)
	for _, wait := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		h.Hint(s.Context(), wait)
		s.unchanged(before, inspect(g), "Hint of "+wait.String())
	}
	s.intact(g, "hints of nothing")
}

// anyHint: what a guard makes of a hint is its policy; it may admit or refuse, but nothing else.
func (s *suite) anyHint() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for _, wait := range []time.Duration{1, time.Second, time.Hour, math.MaxInt64} {
		g := s.cfg.New(s)
		h, ok := g.(leaf.Hinter)
		if !ok {
			return
		}
		h.Hint(ctx, wait) // heard also when its caller is gone
		h.Hint(s.Context(), wait)
		if c := s.prompt(s.Context(), g.Acquire, "Acquire after Hint("+wait.String()+")"); c.err == nil {
			c.settle(leaf.NotRun)
		} else {
			s.wantRefusal(c.err, "Acquire after Hint("+wait.String()+")")
			s.wantZero(c, "Acquire after Hint("+wait.String()+")")
		}
	}
}

// steadyAnswers: a pipeline asks these at Build or at any time later, and takes them for the same.
func (s *suite) steadyAnswers() {
	type answers struct {
		lease             time.Duration
		occupies, wantsIt bool
	}
	for _, k := range s.kinds() {
		g := k.fresh(s)
		before := inspect(g)
		ask := func() (a answers) {
			if l, ok := g.(leaf.Leaser); ok {
				a.lease = l.Lease()
			}
			if o, ok := g.(leaf.Occupier); ok {
				a.occupies = o.Occupies()
			}
			if t, ok := g.(leaf.Timed); ok {
				a.wantsIt = t.WantsTook()
			}
			return a
		}
		first := ask()
		for range s.cfg.Rounds {
			if again := ask(); again != first {
				s.Fatalf("Lease, Occupies, WantsTook of %s: first %+v, then %+v", k.name, first, again)
			}
		}
		s.unchanged(before, inspect(g), "Lease, Occupies and WantsTook of "+k.name)
		s.intact(g, "Lease, Occupies and WantsTook")
	}
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

func (s *suite) inspectIsConsistent() {
	for _, k := range s.kinds() {
		g := k.fresh(s)
		if _, ok := g.(leaf.Inspector); !ok {
			return
		}
		first := s.sane(g, k.name+", fresh")
		s.unchanged(first, s.sane(g, k.name+", asked twice"), "Inspect of "+k.name)
		calls := s.fill(g)
		s.likeBefore(first, s.sane(g, k.name+", full"))
		s.prompt(s.doneCtx(), g.Acquire, "Acquire")
		settleAll(calls, leaf.NotRun)
		s.likeBefore(first, s.sane(g, k.name+", settled"))
		s.idle(g)
		s.intact(g, "Inspect")
	}
	if g := s.refusing(); g != nil {
		s.sane(g, "a refusing guard")
	}
}

func (s *suite) doneCtx() context.Context {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	return ctx
}

// sane checks one snapshot alone.
func (s *suite) sane(g leaf.Guard, what string) leaf.Snapshot {
	s.Helper()
	snapshot := inspect(g)
	if snapshot.Kind == "" {
		s.Fatalf("Inspect of %s: no Kind", what)
	}
	seen := map[string]bool{}
	for _, gauge := range snapshot.Gauges {
		switch {
		case !snakeCase.MatchString(gauge.Name):
			s.Fatalf("Inspect of %s: gauge name %q is not snake case", what, gauge.Name)
		case seen[gauge.Name]:
			s.Fatalf("Inspect of %s: two gauges %q", what, gauge.Name)
		case !check.Finite(gauge.Value) || !check.Finite(gauge.Limit):
			s.Fatalf("Inspect of %s: gauge %+v is not finite", what, gauge)
		case gauge.Limit < 0:
			s.Fatalf("Inspect of %s: gauge %+v has a limit below 0", what, gauge)
		}
		seen[gauge.Name] = true
	}
	return snapshot
}

// likeBefore: the same guard shows the same gauges in the same order, whatever their values.
func (s *suite) likeBefore(before, after leaf.Snapshot) {
	s.Helper()
	if before.Kind != after.Kind || before.Name != after.Name {
		s.Fatalf("Inspect: kind and name were %q %q, now %q %q", before.Kind, before.Name, after.Kind, after.Name)
	}
	if a, b := names(before), names(after); !slices.Equal(a, b) {
		s.Fatalf("Inspect: the gauges were %v, now %v", a, b)
	}
}

func names(sn leaf.Snapshot) (all []string) {
	for _, g := range sn.Gauges {
		all = append(all, g.Name)
	}
	return all
}

// unchanged compares state and the gauges that count (whole numbers); what follows the clock may move in between.
func (s *suite) unchanged(before, after leaf.Snapshot, by string) {
	s.Helper()
	s.likeBefore(before, after)
	if before.State != after.State {
		s.Fatalf("%s changed the state from %q to %q", by, before.State, after.State)
	}
	for i, was := range before.Gauges {
		is := after.Gauges[i]
		if whole(was.Value) && whole(is.Value) && was.Value != is.Value {
			s.Fatalf("%s changed gauge %q from %v to %v", by, was.Name, was.Value, is.Value)
		}
	}
}

func whole(f float64) bool { return f == math.Trunc(f) }

// idle checks the two gauges whose meaning every guard shares: once all is settled nobody is inside and nobody waits.
func (s *suite) idle(g leaf.Guard) {
	s.Helper()
	for waited := time.Duration(0); ; waited += time.Millisecond {
		busy := slices.IndexFunc(inspect(g).Gauges, func(gauge leaf.Gauge) bool {
			return (gauge.Name == "in_use" || gauge.Name == "queued") && gauge.Value != 0
		})
		if busy < 0 {
			return
		}
		if waited >= s.cfg.Lag {
			s.Fatalf("Inspect: nobody is inside and nobody waits, but gauge %+v", inspect(g).Gauges[busy])
		}
		<-time.After(time.Millisecond)
	}
}

// inspect is the zero Snapshot for a guard that shows nothing.
func inspect(g leaf.Guard) leaf.Snapshot {
	if i, ok := g.(leaf.Inspector); ok {
		return i.Inspect()
	}
	return leaf.Snapshot{}
}
