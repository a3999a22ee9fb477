package ratelimit

import (
	"context"
	"sync/atomic"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/reading"
	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
)

// Limiter is a leaf.Guard, safe for concurrent use. Make one with [New] or [NewQuota].
type Limiter struct {
	bucket atomic.Pointer[bucket] // replaced under queue.mu
	queue  queue
	clock  clock.Clock
}

var (
	_ Limit          = (*Limiter)(nil)
	_ leaf.Guard     = (*Limiter)(nil)
	_ leaf.Settler   = (*Limiter)(nil)
	_ leaf.Trier     = (*Limiter)(nil)
	_ leaf.Inspector = (*Limiter)(nil)
)

// New makes a full bucket; its error names each invalid field and its value.
func New(cfg Config) (*Limiter, error) {
	cfg, p, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	l := &Limiter{clock: clock.Of(cfg.Clock)}
	l.bucket.Store(&bucket{policy: p, cfg: cfg, base: l.clock.Now()})
	return l, nil
}

// MustNew is New that panics instead.
func MustNew(cfg Config) *Limiter { return must(New(cfg)) }

func must(l *Limiter, err error) *Limiter {
	if err != nil {
		panic(err)
	}
	return l
}

// Update changes the parameters; the balance of that instant stays, at most the new Burst, and waiters keep their order.
// Who waits keeps the MaxWait it came with; where the new rate no longer serves it in time, it is refused now, and where it
// wants more than the new Burst, it gets that usage error. Clock may not change. An invalid cfg is an error and changes
// nothing.
// A quota takes a cfg with Rate 0 and Burst n: what was spent stays spent. A limiter never becomes a quota, nor the reverse.
func (l *Limiter) Update(cfg Config) error {
	quota := l.bucket.Load().quota()
	fill := Config.filled
	if quota {
		fill = Config.filledQuota
	}
	cfg, p, err := fill(cfg)
	if err == nil && !quota && !clock.Same(cfg.Clock, l.Config().Clock) {
		bad := check.List{Name: cfg.Name}
		is, want := clock.Another(l.Config().Clock, cfg.Clock)
		bad.Bad("ratelimit", "Clock", is, want)
		err = bad.Err()
	}
	if err != nil {
		return err
	}
	l.locked(func(b *bucket, now instant) { l.reconfigure(b, now, &bucket{policy: p, cfg: cfg}) })
	return nil
}

// Config is what is in force, defaults filled in; a quota's has Rate 0, Per 0 and Burst n. New and Update take it back as it is; a
// Burst that was the default goes on following Rate in a copy where that is changed.
func (l *Limiter) Config() Config { return l.bucket.Load().cfg }

// Clock is Config's (nil = real time); used is false for a quota.
func (l *Limiter) Clock() (clock clockwork.Clock, used bool) {
	b := l.bucket.Load()
	return b.cfg.Clock, !b.quota()
}

// Acquire takes 1 token, as Wait does.
func (l *Limiter) Acquire(ctx context.Context) (leaf.Permit, error) {
	if err := l.Wait(ctx, 1); err != nil {
		return leaf.Permit{}, err
	}
	return leaf.NewPermit(l, 0), nil
}

// AcquireAt is Acquire for a caller who has read real time just now: the pipeline, which shares the reading with others. It
// decides what needs no second look; everything else is Acquire's, which may wait: then the reading is no longer fresh.
func (l *Limiter) AcquireAt(ctx context.Context, now reading.Instant) (p leaf.Permit, fresh bool, err error) {
	if b := l.bucket.Load(); l.clock.Real() && !b.quota() && ctx.Err() == nil {
		if took, wait := l.passAt(b, b.at(now.Nanoseconds()), 1); took != nil && wait == 0 {
			return leaf.NewPermit(l, 0), true, nil
		}
	}
	p, err = l.Acquire(ctx)
	return
}

// Sharing is for the pipeline.
func (l *Limiter) Sharing(reading.Instant) reading.Sharing {
	return reading.Sharing{Self: l, Reads: true, Quiet: true}
}

// TryAcquire takes 1 token that is there, or refuses; it overtakes nobody who waits.
func (l *Limiter) TryAcquire(ctx context.Context) (leaf.Permit, error) {
	if err := ended.Err(ctx); err != nil {
		return leaf.Permit{}, err
	}
	if err := l.AllowN(1); err != nil {
		return leaf.Permit{}, err
	}
	return leaf.NewPermit(l, 0), nil
}

// Settle refunds the token of a call that did not run (leaf.NotRun), never above Burst; any other outcome changes nothing.
// Called by the permit alone.
func (l *Limiter) Settle(ctx context.Context, token uint64, o leaf.Outcome) error {
	if o.Verdict != leaf.NotRun {
		return nil
	}
	b := l.bucket.Load()
	for {
		w := word(b.word.Load())
		if !w.plain() {
			l.locked(func(b *bucket, now instant) { l.giveBack(b, now, 1) })
			return nil
		}
		if b.word.CompareAndSwap(int64(w), int64(wordOf(b.give(w.tat(), 1)))) {
			return nil
		}
	}
}

// Tokens is what the bucket holds now, 0 to Burst, fractions included.
func (l *Limiter) Tokens() float64 {
	_, tokens, _ := l.look()
	return tokens
}

// Inspect: kind "ratelimit", gauge "tokens" (limit Burst) and "queued".
func (l *Limiter) Inspect() leaf.Snapshot {
	cfg, tokens, queued := l.look()
	return leaf.Snapshot{Kind: "ratelimit", Name: cfg.Name, Gauges: []leaf.Gauge{
		{Name: "tokens", Value: tokens, Limit: float64(cfg.Burst)},
		{Name: "queued", Value: float64(queued)},
	}}
}
