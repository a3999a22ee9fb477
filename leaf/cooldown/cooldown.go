package cooldown

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/reading"
	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
)

// Cooldown is a leaf.Guard, safe for concurrent use. Make one with [New].
type Cooldown struct {
	clock clock.Clock
	state atomic.Pointer[instant]
}

var (
	_ leaf.Guard     = (*Cooldown)(nil)
	_ leaf.Trier     = (*Cooldown)(nil)
	_ leaf.Peeker    = (*Cooldown)(nil)
	_ leaf.Hinter    = (*Cooldown)(nil)
	_ leaf.Inspector = (*Cooldown)(nil)
)

// New makes a cooldown that admits; its error names each invalid field and its value.
func New(cfg Config) (*Cooldown, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	c := &Cooldown{clock: clock.Of(cfg.Clock)}
	c.state.Store(&instant{cfg: &cfg, until: none})
	return c, nil
}

// MustNew is New that panics instead.
func MustNew(cfg Config) *Cooldown {
	c, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return c
}

// Update changes the parameters and keeps the instant (at most the new Max ahead). Clock may not change.
// An invalid cfg is an error and changes nothing.
func (c *Cooldown) Update(cfg Config) error {
	cfg, err := cfg.filled()
	if err == nil && !clock.Same(cfg.Clock, c.Config().Clock) {
		bad := check.List{Name: cfg.Name}
		is, want := clock.Another(c.Config().Clock, cfg.Clock)
		bad.Bad("cooldown", "Clock", is, want)
		err = bad.Err()
	}
	if err != nil {
		return err
	}
	for {
		s := c.state.Load()
		if c.state.CompareAndSwap(s, s.updated(c.clock.Now(), &cfg)) {
			return nil
		}
	}
}

// Config is what is in force, defaults filled in.
func (c *Cooldown) Config() Config { return *c.state.Load().cfg }

// Clock is Config's (nil = real time); used is true: every hint needs it.
func (c *Cooldown) Clock() (clock clockwork.Clock, used bool) { return c.state.Load().cfg.Clock, true }

// Acquire refuses with an [*Error] before the instant and admits from it on. It never waits; its permit is the zero one.
// For a ctx that is done, the error is ctx's own.
func (c *Cooldown) Acquire(ctx context.Context) (leaf.Permit, error) {
	if err := ended.Err(ctx); err != nil {
		return leaf.Permit{}, err
	}
	s := c.state.Load()
	if s.until == none {
		return leaf.Permit{}, nil
	}
	if wait := s.wait(c.clock.Now()); wait > 0 {
		return leaf.Permit{}, &Error{Name: s.cfg.Name, Wait: wait}
	}
	// Passed, or left behind by a jump: forgotten, so that no later call reads the clock for it and no clock that drifts
	// towards it can bring it back. Whoever changed the state meanwhile knows better.
	c.state.CompareAndSwap(s, &instant{cfg: s.cfg, until: none})
	return leaf.Permit{}, nil
}

// AcquireAt is Acquire for the pipeline, whose reading of real time stays fresh: nobody waits here.
func (c *Cooldown) AcquireAt(ctx context.Context, _ reading.Instant) (p leaf.Permit, fresh bool, err error) {
	fresh = true
	p, err = c.Acquire(ctx)
	return
}

// Sharing is for the pipeline.
func (c *Cooldown) Sharing(reading.Instant) reading.Sharing {
	return reading.Sharing{Self: c, Quiet: true}
}

// TryAcquire is Acquire.
func (c *Cooldown) TryAcquire(ctx context.Context) (leaf.Permit, error) { return c.Acquire(ctx) }

// Peek is the refusal that Acquire would give now, or nil. It looks at the instant alone, not at ctx.
func (c *Cooldown) Peek(ctx context.Context) error {
	s := c.state.Load()
	if wait := c.left(s); wait > 0 {
		return &Error{Name: s.cfg.Name, Wait: wait}
	}
	return nil
}

// Hint moves the instant to now+wait, capped at now+Max; only ever later. wait <= 0 changes nothing.
func (c *Cooldown) Hint(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	for {
		s := c.state.Load()
		next := s.hinted(c.clock.Now(), wait)
		if next == s || c.state.CompareAndSwap(s, next) {
			return
		}
	}
}

// Wait is the time until the instant; 0 = it admits.
func (c *Cooldown) Wait() time.Duration { return c.left(c.state.Load()) }

// left reads the clock after the state was loaded: an instant made by a later reading would look like a jump.
func (c *Cooldown) left(s *instant) time.Duration {
	if s.until == none {
		return 0
	}
	return s.wait(c.clock.Now())
}

// Inspect: kind "cooldown", state "clear" (it admits; "open" is the word of a circuit that refuses) or "cooling", gauge
// "wait_seconds" (limit Max in seconds).
func (c *Cooldown) Inspect() leaf.Snapshot {
	s := c.state.Load()
	wait, state := c.left(s), "clear"
	if wait > 0 {
		state = "cooling"
	}
	return leaf.Snapshot{Kind: "cooldown", Name: s.cfg.Name, State: state, Gauges: []leaf.Gauge{
		{Name: "wait_seconds", Value: wait.Seconds(), Limit: s.cfg.Max.Seconds()},
	}}
}
