package timeout

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/limit"
	"github.com/fairlead/fairlead/internal/reading"
)

// Config of a [Timeout]. It is plain data; a Timeout keeps a copy.
type Config struct {
	// Name is named in the error; "" is allowed.
	Name string
	// Limit is how long the callback may run, to the nanosecond; required, positive, no upper bound.
	Limit time.Duration
	// Clock; nil = real time, read on the monotonic scale. With another one, deadlines of contexts are its instants.
	Clock clockwork.Clock
}

// validate names each invalid field and its value.
func (cfg Config) validate() error {
	bad := check.List{Name: cfg.Name}
	if cfg.Limit <= 0 {
		bad.Bad("timeout", "Limit", cfg.Limit, "a positive duration")
	}
	if cfg.Clock != nil && check.Nil(cfg.Clock) {
		bad.Bad("timeout", "Clock", check.Type(cfg.Clock), "a clock, or nil for real time")
	}
	return bad.Err()
}

// Timeout is a limit, safe for concurrent use. It is no leaf.Guard: it admits everybody. Make one with [New]: the zero Timeout
// has no limit, and panics.
type Timeout struct {
	clk    clock.Clock
	plan   atomic.Pointer[plan] // immutable; replaced as a whole
	update sync.Mutex
}

// plan is what is in force.
type plan struct {
	Config
	spec limit.Spec
}

func newPlan(cfg Config) *plan {
	return &plan{cfg, limit.Spec{Name: cfg.Name, Limit: cfg.Limit, NewCause: newCause}}
}

// New makes a limit; its error names each invalid field and its value.
func New(cfg Config) (*Timeout, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t := &Timeout{clk: clock.Of(cfg.Clock)}
	t.plan.Store(newPlan(cfg))
	return t, nil
}

// MustNew is New that panics instead.
func MustNew(cfg Config) *Timeout {
	t, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return t
}

// Update changes the limit for calls that begin later; those under way keep theirs. Clock may not change.
// An error, which is as New's, changes nothing.
func (t *Timeout) Update(cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	t.update.Lock()
	defer t.update.Unlock()
	if was := t.plan.Load().Clock; !clock.Same(was, cfg.Clock) {
		bad := check.List{Name: cfg.Name}
		is, want := clock.Another(was, cfg.Clock)
		bad.Bad("timeout", "Clock", is, want)
		return bad.Err()
	}
	t.plan.Store(newPlan(cfg))
	return nil
}

// Config is what is in force.
func (t *Timeout) Config() Config { return t.plan.Load().Config }

// SpecAt is what is in force, for the pipeline, which makes the contexts itself.
func (t *Timeout) SpecAt(reading.Instant) *limit.Spec { return &t.plan.Load().spec }

// Clock is Config's (nil = real time); used says that this leaf reads it at all, which a limit always does.
// Build compares the clocks of its layers.
func (t *Timeout) Clock() (clock clockwork.Clock, used bool) { return t.plan.Load().Clock, true }
