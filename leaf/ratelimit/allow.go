package ratelimit

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
)

// Limit is what the local limiter and one shared through a store have in common.
type Limit interface {
	leaf.Guard
	leaf.Trier
	leaf.Inspector
	Wait(ctx context.Context, n int) error
}

// Allow takes 1 token if it is there. It never waits and overtakes nobody who waits.
func (l *Limiter) Allow() bool {
	switch b, wait := l.pass(1); {
	case b == nil:
		_, err := l.join(1, 0)
		return err == nil
	default:
		return wait == 0
	}
}

// AllowN takes n tokens if they are there: nil, a [*LimitedError], or for n < 0 and n > Burst a usage error (no refusal)
// that names n and Burst. n = 0 is free. It never waits; a refusal costs nothing.
func (l *Limiter) AllowN(n int) error {
	if err := l.usage(n); err != nil || n == 0 {
		return err
	}
	switch b, wait := l.pass(int64(n)); {
	case b == nil:
		_, err := l.join(int64(n), 0)
		return err
	case wait != 0:
		return limited(b, wait)
	}
	return nil
}

// Wait takes n tokens, waiting for them in turn. What does not fit MaxWait or ctx's deadline is refused now, costs nothing,
// and says how long it would take, those in front included. When ctx ends the wait, the tokens go back, and the error is
// ctx's own. n < 0 and n > Burst are usage errors as for AllowN; n = 0 is free.
//
// A wait of exactly MaxWait fits; one that would end exactly at ctx's deadline does not: a done ctx takes nothing.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	if err := l.usage(n); err != nil {
		return err
	}
	if err := ended.Err(ctx); err != nil || n == 0 {
		return err
	}
	b, wait := l.pass(int64(n))
	if b != nil && wait == 0 {
		return nil
	}
	most := l.most(ctx)
	if b != nil && (wait < 0 || wait > most) {
		return limited(b, wait)
	}
	w, err := l.join(int64(n), most)
	if w == nil {
		return err
	}
	return l.await(ctx, w)
}

// most is the longest wait that fits MaxWait and ends before ctx does.
func (l *Limiter) most(ctx context.Context) time.Duration {
	most := l.bucket.Load().cfg.MaxWait
	if most == 0 {
		return 0
	}
	if left, ok := l.clock.Left(ctx); ok {
		most = min(most, left-1)
	}
	return most
}

// pass takes n tokens, from 1, in passing: one reading of the clock, one compare-and-swap, no lock. wait is 0 when they were
// taken, else the wait of a refusal by b. b is nil, and nothing was decided, where somebody waits or the bucket must be
// renewed first.
func (l *Limiter) pass(n int64) (b *bucket, wait time.Duration) {
	b = l.bucket.Load()
	return l.passAt(b, b.read(l.clock), n)
}

func (l *Limiter) passAt(b *bucket, now instant, n int64) (_ *bucket, wait time.Duration) {
	if now.place != inside || n > int64(b.cfg.Burst) {
		return nil, 0
	}
	for {
		w := word(b.word.Load())
		if !w.plain() {
			return nil, 0
		}
		tat, ok := b.take(w.tat(), now.units, n)
		switch {
		case ok:
			if b.word.CompareAndSwap(int64(w), int64(wordOf(tat))) {
				return b, 0
			}
		case b.lost(w.tat(), now):
			return nil, 0
		default:
			return b, b.wait(w.tat(), now, n)
		}
	}
}

// usage is what no time and no token can mend.
func (l *Limiter) usage(n int) error {
	if b := l.bucket.Load(); n < 0 || n > b.cfg.Burst {
		return usageError(b, int64(n))
	}
	return nil
}

func usageError(b *bucket, n int64) error {
	return fmt.Errorf("ratelimit: %q: n is %d: want 0 to %d (Burst)", b.cfg.Name, n, b.cfg.Burst)
}

func limited(b *bucket, wait time.Duration) error { return &LimitedError{Name: b.cfg.Name, Wait: wait} }
