package bulkhead

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

// Bulkhead is a leaf.Guard, safe for concurrent use. Make one with [New].
type Bulkhead struct {
	queue queue
	cfg   atomic.Pointer[Config] // changed under queue.mu, together with the slots
	clock clock.Clock
}

// Slots is what the local bulkhead and one shared through a store have in common.
type Slots interface {
	leaf.Guard
	leaf.Trier
	leaf.Occupier
	leaf.Inspector
	Queued() int
}

var (
	_ Slots          = (*Bulkhead)(nil)
	_ leaf.Guard     = (*Bulkhead)(nil)
	_ leaf.Settler   = (*Bulkhead)(nil)
	_ leaf.Trier     = (*Bulkhead)(nil)
	_ leaf.Occupier  = (*Bulkhead)(nil)
	_ leaf.Inspector = (*Bulkhead)(nil)
)

// New makes an empty bulkhead; its error names each invalid field and its value.
func New(cfg Config) (*Bulkhead, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	b := &Bulkhead{clock: clock.Of(cfg.Clock)}
	b.cfg.Store(&cfg)
	b.queue.word.Store(cfg.slots() * int64(slot))
	return b, nil
}

// MustNew is New that panics instead.
func MustNew(cfg Config) *Bulkhead {
	b, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return b
}

// Update changes the parameters; who is inside stays inside and who waits keeps place and the MaxWait it came with.
// More slots are handed to the waiters at once; fewer take effect as slots come back. Clock may not change.
// An invalid cfg is an error and changes nothing.
func (b *Bulkhead) Update(cfg Config) error {
	err := cfg.check()
	if err == nil && !clock.Same(cfg.Clock, b.Config().Clock) {
		bad := check.List{Name: cfg.Name}
		is, want := clock.Another(b.Config().Clock, cfg.Clock)
		bad.Bad("bulkhead", "Clock", is, want)
		err = bad.Err()
	}
	if err != nil {
		return err
	}
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	old := b.cfg.Swap(&cfg)
	b.queue.resize(cfg.slots() - old.slots())
	return nil
}

// Config is what is in force.
func (b *Bulkhead) Config() Config { return *b.cfg.Load() }

// Clock is Config's (nil = real time); used is false without a MaxWait.
func (b *Bulkhead) Clock() (clock clockwork.Clock, used bool) {
	cfg := b.cfg.Load()
	return cfg.Clock, cfg.MaxWait > 0
}

// Acquire takes a slot, waits for one at most MaxWait and as long as ctx lives, or refuses with a [*FullError].
// When ctx ends the wait, the error is ctx's own. Where ctx's deadline and the end of MaxWait are the same instant, it is
// ctx that ends the wait; a ctx that lives on past a deadline that it told is refused as any other, up to 5 ms after MaxWait.
func (b *Bulkhead) Acquire(ctx context.Context) (leaf.Permit, error) {
	if ctx.Err() != nil {
		return leaf.Permit{}, ended.Err(ctx)
	}
	if b.queue.take() {
		return leaf.NewPermit(b, 0), nil
	}
	cfg := b.cfg.Load()
	if cfg.MaxWait == 0 {
		return leaf.Permit{}, b.full(0)
	}
	switch w, taken := b.queue.join(cfg.MaxQueue); {
	case taken:
	case w == nil:
		return leaf.Permit{}, b.full(0)
	default:
		if err := b.wait(ctx, w, cfg); err != nil {
			return leaf.Permit{}, err
		}
	}
	return leaf.NewPermit(b, 0), nil
}

// AcquireAt is Acquire for the pipeline, which has read real time just now and wants to know whether that is still fresh: it
// is unless the call had to wait for its slot.
func (b *Bulkhead) AcquireAt(ctx context.Context, _ reading.Instant) (p leaf.Permit, fresh bool, err error) {
	if ctx.Err() == nil && b.queue.take() {
		return leaf.NewPermit(b, 0), true, nil
	}
	p, err = b.Acquire(ctx)
	return
}

// Sharing is for the pipeline.
func (b *Bulkhead) Sharing(reading.Instant) reading.Sharing {
	return reading.Sharing{Self: b, Quiet: true}
}

// TryAcquire takes a free slot or refuses; it overtakes nobody who waits.
func (b *Bulkhead) TryAcquire(ctx context.Context) (leaf.Permit, error) {
	if err := ended.Err(ctx); err != nil {
		return leaf.Permit{}, err
	}
	if b.queue.take() {
		return leaf.NewPermit(b, 0), nil
	}
	return leaf.Permit{}, b.full(0)
}

// full is a refusal. It is made anew each time: who gets an error may keep it, and write to it.
func (b *Bulkhead) full(waited time.Duration) error {
	cfg := b.cfg.Load()
	return &FullError{Name: cfg.Name, Max: cfg.MaxConcurrent, Waited: max(0, waited)}
}

// Settle frees the slot, whatever the outcome, and hands it to the first in the queue. Called by the permit alone.
func (b *Bulkhead) Settle(ctx context.Context, token uint64, o leaf.Outcome) error {
	b.queue.give()
	return nil
}

// Occupies is true: a detached call holds its slot until the callback really ends.
func (b *Bulkhead) Occupies() bool { return true }

// InUse is the number of slots taken; above MaxConcurrent after an Update lowered it, until the slots have come back.
func (b *Bulkhead) InUse() int {
	inUse, _, _ := b.counts()
	return inUse
}

// Queued is the number of calls that wait.
func (b *Bulkhead) Queued() int {
	_, queued, _ := b.counts()
	return queued
}

// Inspect: kind "bulkhead", gauges "in_use" (limit MaxConcurrent) and "queued" (limit MaxQueue).
func (b *Bulkhead) Inspect() leaf.Snapshot {
	inUse, queued, cfg := b.counts()
	return leaf.Snapshot{Kind: "bulkhead", Name: cfg.Name, Gauges: []leaf.Gauge{
		{Name: "in_use", Value: float64(inUse), Limit: float64(cfg.MaxConcurrent)},
		{Name: "queued", Value: float64(queued), Limit: float64(cfg.MaxQueue)},
	}}
}

// counts reads the slots and their limit together.
func (b *Bulkhead) counts() (inUse, queued int, cfg *Config) {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	cfg = b.cfg.Load()
	return int(cfg.slots() - word(b.queue.word.Load()).free()), b.queue.waiters.Len(), cfg
}
