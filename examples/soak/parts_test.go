package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// part is a guard with an oracle beside it.
type part struct {
	kind   string
	guard  leaf.Guard
	begin  func()                                  // a phase begins; nil = nothing to do
	run    func(ctx context.Context, in bool)      // a callback begins, or ends, under it; nil = nothing to see
	rest   func() error                            // nobody is inside: what is wrong; nil = nothing can be
	revive time.Duration                           // after the faults it admits again after so long, at most
	atOnce bool                                    // rest holds as soon as the last call is back, also where a callback outlives its call
	never  bool                                    // it may be spent for good
	meddle func(ctx context.Context, r *rand.Rand) // what somebody may do to it meanwhile; nil = nothing
	after  func(ctx context.Context)               // the faults are over; nil = nothing to do
}

type tenant struct{}

// tenantOf is the key of a keyed guard.
func tenantOf(ctx context.Context) int { t, _ := ctx.Value(tenant{}).(int); return t }

// gauge is the bulkhead's oracle: how many callbacks are inside.
type gauge struct{ now atomic.Int64 }

func (g *gauge) run(w *world, name string, limit int, in bool) {
	if !in {
		g.now.Add(-1)
	} else if n := g.now.Add(1); n > int64(limit) {
		w.fail("%s of %d has %d callbacks inside", name, limit, n)
	}
}

func idle(b *bulkhead.Bulkhead) bool { return b.InUse() == 0 && b.Queued() == 0 }

func empty(b *bulkhead.Bulkhead) error {
	if !idle(b) {
		return fmt.Errorf("bulkhead at rest: %d in use, %d queued", b.InUse(), b.Queued())
	}
	return nil
}

func (w *world) bulkheadConfig() bulkhead.Config {
	cfg := bulkhead.Config{Name: "b", MaxConcurrent: 1 + w.rnd.IntN(4), Clock: w.timer()}
	if w.rnd.IntN(2) == 0 {
		cfg.MaxWait = w.some(20)
		cfg.MaxQueue = w.rnd.IntN(4)
	}
	return cfg
}

func (w *world) newBulkhead() *part {
	cfg := w.bulkheadConfig()
	b := bulkhead.MustNew(cfg)
	var g gauge
	return &part{
		guard: b,
		run:   func(_ context.Context, in bool) { g.run(w, "bulkhead", cfg.MaxConcurrent, in) },
		rest:  func() error { return empty(b) },
		meddle: func(_ context.Context, r *rand.Rand) {
			if n := b.InUse(); n < 0 || n > cfg.MaxConcurrent {
				w.fail("bulkhead of %d: %d in use", cfg.MaxConcurrent, n)
			}
			next := cfg
			if r.IntN(2) == 0 {
				next.MaxWait, next.MaxQueue = 0, 0
			}
			if err := b.Update(next); err != nil {
				w.fail("bulkhead: update: %v", err)
			}
		},
	}
}

// newKeyedBulkhead is one bulkhead per tenant, and fewer of them than there are tenants.
func (w *world) newKeyedBulkhead() *part {
	cfg := w.bulkheadConfig()
	var mu sync.Mutex
	var all []*bulkhead.Bulkhead
	gauges := [tenants]gauge{}
	g := leaf.Keyed(1+w.rnd.IntN(tenants), tenantOf, func(int) (*bulkhead.Bulkhead, error) {
		mu.Lock()
		defer mu.Unlock()
		b := bulkhead.MustNew(cfg)
		all = append(all, b)
		return b, nil
	}, idle)
	return &part{
		guard: g,
		run: func(ctx context.Context, in bool) {
			gauges[tenantOf(ctx)].run(w, "keyed bulkhead", cfg.MaxConcurrent, in)
		},
		rest: func() error {
			mu.Lock()
			defer mu.Unlock()
			for _, b := range all {
				if err := empty(b); err != nil {
					return err
				}
			}
			for _, gauge := range g.(leaf.Inspector).Inspect().Gauges {
				if gauge.Name == "in_use" && gauge.Value != 0 {
					return fmt.Errorf("keyed guard at rest: %v in use", gauge.Value)
				}
			}
			return nil
		},
	}
}

const tenants = 4

// newShadow is a bulkhead that refuses nobody.
func (w *world) newShadow() *part {
	b := bulkhead.MustNew(w.bulkheadConfig())
	g := leaf.Shadow(b, func(context.Context, error) {})
	return &part{guard: g, rest: func() error { return empty(b) }}
}

func (w *world) newLimiter() *part {
	cfg := ratelimit.Config{Name: "l", Rate: 1 + w.rnd.IntN(20), Per: w.some(40), Burst: w.rnd.IntN(8), Clock: w.timer()}
	if w.rnd.IntN(2) == 0 {
		cfg.MaxWait = w.some(20)
	}
	if cfg.Per/time.Duration(cfg.Rate) < time.Microsecond {
		cfg.Per = time.Duration(cfg.Rate) * time.Microsecond
	}
	l := ratelimit.MustNew(cfg)
	burst := l.Config().Burst
	if burst == 0 {
		burst = max(1, cfg.Rate)
	}
	var runs atomic.Int64
	return &part{
		guard: l,
		begin: func() { runs.Store(0) },
		run: func(_ context.Context, in bool) {
			if !in {
				return
			}
			n := runs.Add(1)
			passed, resets := w.span.passed() // read afterwards: never too short
			most := float64(burst*(1+resets)) + float64(cfg.Rate)*(float64(passed)/float64(cfg.Per))
			if float64(n) > most+1e-6 {
				w.fail("limiter of %d per %v, burst %d: %d runs after %v, %d resets", cfg.Rate, cfg.Per, burst, n, passed, resets)
			}
		},
		rest: func() error {
			if tokens := l.Tokens(); tokens < 0 || tokens > float64(burst) {
				return fmt.Errorf("limiter holds %v tokens of %d", tokens, burst)
			}
			for _, g := range l.Inspect().Gauges {
				if g.Name == "queued" && g.Value != 0 {
					return fmt.Errorf("limiter at rest: %v queued", g.Value)
				}
			}
			return nil
		},
		revive: cfg.Per/time.Duration(cfg.Rate) + 1,
	}
}

func (w *world) newQuota() *part {
	n := 1 + w.rnd.IntN(30)
	l := ratelimit.MustNewQuota("q", n)
	var runs atomic.Int64
	return &part{
		guard: l,
		run: func(_ context.Context, in bool) {
			if in && runs.Add(1) > int64(n) {
				w.fail("quota of %d: %d runs", n, runs.Load())
			}
		},
		rest: func() error {
			if left := l.Tokens(); left != float64(int64(n)-runs.Load()) {
				return fmt.Errorf("quota of %d: %d runs, and %v left", n, runs.Load(), left)
			}
			return nil
		},
		never: true,
	}
}

func (w *world) newBreaker() *part {
	r := w.rnd
	cfg := breaker.Config{Name: "c", Clock: w.timer(), OpenFor: w.some(30), Probes: r.IntN(3), OpenJitter: r.IntN(3) == 0}
	switch r.IntN(4) {
	case 0:
		cfg.Window = breaker.Count(1 + r.IntN(10))
	case 1:
		cfg.Window = breaker.Count(1 + r.IntN(10)).Within(w.some(100) + 10)
	case 2:
		cfg.Window = breaker.Time(w.some(100) + 10)
	}
	if r.IntN(2) == 0 {
		cfg.MinCalls = 1 + r.IntN(10)
	}
	if r.IntN(2) == 0 {
		cfg.FailureRate = 0.1 + 0.9*r.Float64()
	}
	if r.IntN(3) == 0 {
		cfg.SlowCall = w.some(5)
	}
	if r.IntN(3) == 0 {
		cfg.OpenGrowth = 1 + 2*r.Float64()
	}
	cfg.MaxOpenFor = cfg.OpenFor * time.Duration(1+r.IntN(5))
	if r.IntN(3) == 0 {
		cfg.ProbeSuccesses = 1 + r.IntN(3)
	}
	switch r.IntN(4) {
	case 0:
		cfg.ProbeLease = breaker.NoLease
	case 1:
		cfg.ProbeLease = w.some(100)
	}
	if r.IntN(4) == 0 {
		cfg.IsFailure = func(err error) bool {
			if err == errJudge {
				panic(hook{})
			}
			return err != nil
		}
	}
	var seq uint64 // OnChange is told one at a time, in commit order
	last := breaker.Closed
	cfg.OnChange = func(c breaker.Change) {
		if c.Seq != seq+1 || c.From != last || c.From == c.To {
			w.fail("breaker: change %d from %v to %v after %d to %v", c.Seq, c.From, c.To, seq, last)
		}
		seq, last = c.Seq, c.To
	}
	b, err := breaker.New(cfg)
	if err != nil { // a FailureRate or MinCalls that nothing can trip, say: as good without
		cfg.MinCalls, cfg.FailureRate = 0, 0
		b = breaker.MustNew(cfg)
	}
	return &part{
		guard:  b,
		atOnce: true, // a lease that nobody gave back would be over before long, and not be seen
		rest: func() error {
			s := b.Snapshot()
			if s.Probes != 0 {
				return fmt.Errorf("breaker at rest: %+v", s)
			}
			if s.State != b.State() {
				return fmt.Errorf("breaker: snapshot %v, state %v", s.State, b.State())
			}
			return nil
		},
		meddle: func(ctx context.Context, r *rand.Rand) {
			_ = []func(context.Context) error{b.ForceOpen, b.ForceClosed, b.Auto, b.Auto, b.Reset}[r.IntN(5)](ctx)
			_, _, _ = b.Snapshot(), b.Inspect(), b.Peek(ctx)
		},
		after: func(ctx context.Context) {
			if b.Snapshot().Forced {
				_ = b.Auto(ctx)
			}
		},
		revive: max(cfg.MaxOpenFor, cfg.OpenFor),
	}
}

func (w *world) newCooldown() *part {
	cfg := cooldown.Config{Name: "d", Max: w.some(50), Clock: w.timer()}
	c := cooldown.MustNew(cfg)
	return &part{guard: c, revive: cfg.Max, rest: func() error {
		if wait := c.Wait(); wait < 0 || wait > cfg.Max {
			return fmt.Errorf("cooldown of at most %v waits %v", cfg.Max, wait)
		}
		return nil
	}}
}

// some is a duration of up to n units, never 0.
func (w *world) some(n int) time.Duration {
	return 1 + time.Duration(w.rnd.Int64N(int64(n)*int64(w.unit)))
}
