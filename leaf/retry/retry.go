package retry

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/follow"
	"github.com/jonboulle/clockwork"
)

// Retry is a policy, safe for concurrent use. Make one with [New]: the zero Retry has no plan, and panics.
type Retry struct {
	plan    atomic.Pointer[plan]
	mu      sync.Mutex    // one Update at a time
	private *budget.Ratio // made once, kept over every Update; nil while it was never needed
}

// plan is what is in force, immutable: a loop keeps the one that it began with.
type plan struct {
	Config
	clock clock.Clock
}

// New makes a policy; its error names each invalid field and its value.
func New(cfg Config) (*Retry, error) {
	cfg = cfg.written()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &Retry{}
	r.adopt(cfg, clock.Of(cfg.Clock))
	return r, nil
}

// MustNew is New that panics instead.
func MustNew(cfg Config) *Retry {
	r, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return r
}

// Update changes the parameters for loops that begin later; a private budget keeps its balance. Clock may not change.
// With an error nothing changes.
func (r *Retry) Update(cfg Config) error {
	cfg = cfg.written()
	if err := cfg.validate(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.plan.Load()
	if !clock.Same(cfg.Clock, old.Clock) {
		bad := check.List{Name: cfg.Name}
		is, want := clock.Another(old.Clock, cfg.Clock)
		bad.Bad("retry", "Clock", is, want)
		return bad.Err()
	}
	r.adopt(cfg, old.clock)
	return nil
}

func (r *Retry) adopt(cfg Config, c clock.Clock) {
	cfg = cfg.filled()
	if cfg.Budget == nil && !cfg.NoBudget {
		if r.private == nil {
			r.private = budget.MustNewRatio(budget.RatioConfig{Clock: cfg.Clock})
		}
		cfg.told.budget = follow.Tell(&cfg.Budget, budget.Retry(r.private))
	}
	r.plan.Store(&plan{Config: cfg, clock: c})
}

// Config is what is in force, constant defaults filled in; Budget is the one used, nil with NoBudget. New and Update take it back
// as it is, and what follows another field goes on doing so in a copy where that one is changed: MaxRetryAfter the MaxDelay, the
// private budget NoBudget. In the Config of another Retry a private budget, left alone, is private to that one.
func (r *Retry) Config() Config { return r.plan.Load().Config }

// Clock is Config's (nil = real time); used is true.
func (r *Retry) Clock() (clock clockwork.Clock, used bool) { return r.plan.Load().Clock, true }

// delay is the delay before retry k without any wait asked for, and the upward jitter that such a wait would get: as
// wide as the jitter's own, at most one step. One random number serves both.
func (p *plan) delay(k int) (own, above time.Duration) {
	step := min(max(0, p.Backoff(k)), p.MaxDelay)
	width := p.Jitter.width(step)
	if width <= 0 {
		return step, 0
	}
	u := unit(p.rand())
	return min(p.Jitter.spread(step, u), p.MaxDelay), scale(min(width, step), u)
}

func (p *plan) rand() float64 {
	if p.Rand == nil {
		return rand.Float64()
	}
	return p.Rand()
}

// Do runs fn until it succeeds or the policy stops; undeclared, so that a Strict policy refuses. A ctx that is done runs nothing
// and the error matches its Err and Cause. A success is never discarded. On an error the result is the zero T.
// A rejection that fn returns comes back unchanged from a first run; after an earlier run it is in an [*Error] with reason Refused.
// One that came through a pipeline, a *pipeline.RanError, says by itself that something ran: it is always unchanged.
// When fn panics or calls runtime.Goexit, nothing is retried and nothing stays reserved.
func Do[T any](ctx context.Context, r *Retry, fn func(context.Context) (T, error)) (T, error) {
	return DoSafe(ctx, r, Unsafe, fn)
}

// DoSafe is Do with a declaration that fn may be repeated.
func DoSafe[T any](ctx context.Context, r *Retry, s Safety, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	var l Loop
	if err := r.BeginIn(ctx, s, &l); err != nil {
		return zero, err
	}
	defer l.End()
	for {
		l.Sent()
		v, err := fn(ctx)
		if err == nil {
			return v, nil
		}
		if final := l.Judge(ctx, err); final != nil {
			return zero, final
		}
		if final := l.Reserve(ctx); final != nil {
			return zero, final
		}
		if final := l.Sleep(ctx); final != nil {
			return zero, final
		}
	}
}
