package soak

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// stage is some pipelines and the guards that they share.
type stage struct {
	w       *world
	name    string
	parts   []*part
	budgets []*pool
	targets []*target
	meddle  func(r *rand.Rand) // what may happen to it as a whole; nil = nothing
}

// target is one pipeline and what is known of it.
type target struct {
	*pipeline.Pipeline
	parts    []*part // each once: that fn runs under
	total    time.Duration
	fallback time.Duration
	observed bool
	mapped   bool
	strict   bool
	bare     bool  // ReturnLast
	pool     *pool // nil = a budget that nobody counts
	plans    []pipeline.Builder
}

func newStage(w *world, name string, pipelines int) *stage {
	s := &stage{w: w, name: name}
	s.budgets = []*pool{w.newTokens(), w.newRatio()}
	for range pipelines {
		t := s.newTarget()
		if t == nil {
			continue
		}
		s.targets = append(s.targets, t)
	}
	if len(s.targets) == 0 {
		t := &target{observed: true, fallback: w.some(20)}
		t.plans = []pipeline.Builder{pipeline.For(name).Observe(observe).FallbackTimeout(t.fallback)}
		t.Pipeline = t.plans[0].MustBuild()
		s.targets = append(s.targets, t)
	}
	return s
}

// pick is a part of a kind, perhaps one that another pipeline has too.
func (s *stage) pick(have map[string]*part, kind string, make func() *part) *part {
	if p := have[kind]; p != nil && s.w.rnd.IntN(2) == 0 {
		return p
	}
	p := make()
	have[kind] = p
	s.parts = append(s.parts, p)
	return p
}

func (s *stage) newTarget() *target {
	w, r := s.w, s.w.rnd
	t := &target{observed: r.IntN(4) > 0, fallback: time.Second}
	have := map[string]*part{}
	for _, other := range s.targets {
		for _, p := range other.parts {
			have[p.kind] = p
		}
	}
	b := pipeline.For(s.name)
	add := func(kind string, make func() *part) leaf.Guard {
		p := s.pick(have, kind, make)
		p.kind = kind
		t.parts = append(t.parts, p)
		return p.guard
	}
	if r.IntN(3) == 0 {
		b = b.Cooldown(add("cooldown", w.newCooldown))
	}
	withBreaker, withRetry := r.IntN(2) == 0, r.IntN(3) > 0
	if withBreaker {
		b = b.Breaker(add("breaker", w.newBreaker))
	}
	switch r.IntN(5) {
	case 0, 1:
		b = b.RateLimit(add("limiter", w.newLimiter))
	case 2:
		b = b.RateLimit(add("quota", w.newQuota))
	}
	if r.IntN(3) == 0 {
		b = b.With(add("spy", w.newSpy))
	}
	if r.IntN(6) == 0 {
		b = b.With(add("shadow", w.newShadow))
	}
	switch r.IntN(5) {
	case 0, 1:
		b = b.Bulkhead(add("bulkhead", w.newBulkhead))
	case 2:
		b = b.Bulkhead(add("keyed", w.newKeyedBulkhead))
	}
	if withRetry {
		b = b.Retry(s.newRetry(t))
	}
	least := time.Duration(0)
	if w.kind != inBubble { // what a machine that is busy elsewhere can serve in
		least = 20 * w.unit
	}
	if r.IntN(2) == 0 {
		t.total = 2*least + w.some(100)
		b = b.Timeout(timeout.MustNew(timeout.Config{Name: "total", Limit: t.total, Clock: w.timer()}))
	}
	if limit := least + w.some(30); r.IntN(2) == 0 && (t.total == 0 || limit < t.total) {
		b = b.AttemptTimeout(timeout.MustNew(timeout.Config{Name: "attempt", Limit: limit, Clock: w.timer()}))
	}
	if r.IntN(3) == 0 || w.kind != inBubble {
		t.fallback = w.some(20)
		b = b.FallbackTimeout(t.fallback)
	}
	if r.IntN(3) == 0 {
		t.mapped = true
		b = b.OnRejected(mapper)
	}
	if t.observed {
		b = b.Observe(observe)
	}
	t.plans = []pipeline.Builder{b}
	for _, next := range []pipeline.Builder{b.BreakerOutsideRetry(), b.RetryOnBulkheadFull(), b.RetryOnRateLimited()} {
		if _, err := next.Build(); err == nil {
			t.plans = append(t.plans, next)
		}
	}
	p, err := t.plans[r.IntN(len(t.plans))].Build()
	if err != nil { // a lease below the attempt timeout, say: a rule that other tests hold
		return nil
	}
	t.Pipeline = p
	return t
}

func (s *stage) newRetry(t *target) *retry.Retry {
	w, r := s.w, s.w.rnd
	cfg := retry.Config{
		Name: "r", MaxAttempts: 1 + r.IntN(6), Clock: w.timer(), MaxDelay: w.some(60) + 10*w.unit,
		ReturnLast: r.IntN(4) == 0, RetryNested: r.IntN(4) == 0,
		Jitter: []retry.Jitter{retry.Full, retry.Equal, retry.None, retry.Proportional(0.5), retry.Additive(w.unit)}[r.IntN(5)],
		Backoff: []retry.Backoff{
			retry.Immediate, retry.Constant(w.unit), retry.Exponential(w.unit), retry.ExponentialBy(w.unit, 1.5),
		}[r.IntN(4)],
	}
	t.bare = cfg.ReturnLast
	switch r.IntN(4) {
	case 0:
		cfg.NoBudget = true
	case 1:
		t.pool = s.budgets[0]
	case 2:
		t.pool = s.budgets[1]
	}
	if t.pool != nil {
		cfg.Budget, t.observed = t.pool.budget, true // events tell how many retries were sent
	}
	if r.IntN(5) == 0 {
		cfg.MaxAttempts = retry.Unlimited
		cfg.MaxElapsed = w.some(100)
		cfg.Backoff = retry.Exponential(w.unit) // Immediate would be a spin, in which virtual time stands still
	} else if r.IntN(5) == 0 {
		cfg.MaxElapsed = w.some(50)
	}
	if r.IntN(5) == 0 {
		cfg.Reserve = w.some(5)
	}
	if r.IntN(4) == 0 {
		cfg.MaxRetryAfter = w.some(100)
	}
	if r.IntN(6) == 0 {
		cfg.RetryIf = func(err error) bool {
			if _, ok := err.(judged); ok {
				panic(hook{})
			}
			return err != nil
		}
		if cfg.Budget != nil && r.IntN(2) == 0 {
			cfg.Strict, t.strict = true, true
		}
	}
	return retry.MustNew(cfg)
}

// observe is every pipeline's observer: it tells the call whose context it is told of.
func observe(ctx context.Context, e pipeline.Event) {
	if c := callOf(ctx); c != nil {
		c.observe(e)
	}
}

// errMapped is what the mapper makes of some refusals.
type errMapped struct {
	error
	rejected bool
}

func (e errMapped) Rejected() bool { return e.rejected }

func mapper(ctx context.Context, err error) error {
	c := callOf(ctx)
	if calm(ctx) {
		return err
	}
	switch c.choice(6) {
	case 0:
		return nil
	case 1:
		return errDown
	case 2:
		return errMapped{err, true}
	case 3:
		return errMapped{errDown, false}
	case 4:
		panic(hook{})
	default:
		return err
	}
}

func (s *stage) begin() {
	for _, p := range s.parts {
		if p.begin != nil {
			p.begin()
		}
	}
}

// any is one of the targets.
func (s *stage) any(rnd *rand.Rand) *target { return s.targets[rnd.IntN(len(s.targets))] }
