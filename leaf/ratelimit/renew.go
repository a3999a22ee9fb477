package ratelimit

import (
	"math"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
)

// catchUp draws the consequences of the present instant. Under the queue's mu, as all of this file.
func (l *Limiter) catchUp() (*bucket, instant) {
	b := l.bucket.Load()
	now := b.read(l.clock)
	if b.lost(word(b.word.Load()).tat(), now) {
		b, now = l.succeed(b, now.reading, func(*bucket, int64) int64 { return 0 })
	}
	l.serve(b, now)
	if now.place == beyond {
		ahead := func(old *bucket, tat int64) int64 { return max(0, tat-now.units) }
		b, now = l.succeed(b, now.reading, ahead)
	}
	return b, now
}

// succeed replaces b by a bucket of the same configuration whose base is the reading; state turns b's last state into its.
func (l *Limiter) succeed(b *bucket, base int64, state func(old *bucket, tat int64) int64) (*bucket, instant) {
	next := &bucket{policy: b.policy, cfg: b.cfg, base: base}
	l.publish(next, state(b, l.freeze(b)))
	return next, next.at(base)
}

// freeze ends b: no compare-and-swap of its word can succeed from here on. It returns b's last state.
func (l *Limiter) freeze(b *bucket) (tat int64) { return word(b.word.Swap(int64(frozen))).tat() }

// publish makes next the bucket, with its first state.
func (l *Limiter) publish(next *bucket, tat int64) {
	w := wordOf(tat)
	if l.queue.waiters.Len() > 0 {
		w |= waiting
	}
	next.word.Store(int64(w))
	l.bucket.Store(next)
}

// reconfigure replaces b by next, which has another configuration.
func (l *Limiter) reconfigure(b *bucket, now instant, next *bucket) {
	tat := l.freeze(b)
	if b.quota() {
		l.publish(next, tat) // what was spent
		return
	}
	next.base = max(now.reading, b.base)
	if empty := tat - b.full; empty > now.units {
		// The clock stepped back behind an instant at which the bucket was empty. The new rate counts from there.
		next.base = clock.Add(b.base, time.Duration(min(b.nanos(0, uint64(empty)), math.MaxInt64)))
		now.units = empty
	}
	held := b.converted(b.balance(tat, now.units), &next.policy)
	l.publish(next, next.full-held)
	now = next.at(now.reading)
	l.refuseLate(next, now)
	l.serve(next, now)
}

// refuseLate refuses the waiters that b does not serve any more, or not in time; who is behind them moves up.
func (l *Limiter) refuseLate(b *bucket, now instant) {
	tat, ahead := word(b.word.Load()).tat(), int64(0)
	for e := l.queue.waiters.Front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		switch wait := b.wait(tat, now, ahead+w.n); {
		case w.n > int64(b.cfg.Burst):
			w.err = usageError(b, w.n)
		case clock.Add(now.reading, wait) > w.last:
			w.err = limited(b, wait)
		default:
			ahead += w.n
			continue
		}
		l.drop(w)
		w.state = refused
		close(w.ready)
	}
}

// look reads the bucket as it is now and changes nothing: who is due and not yet served counts as served.
func (l *Limiter) look() (cfg Config, tokens float64, queued int) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	b := l.bucket.Load()
	now := b.read(l.clock)
	tat := word(b.word.Load()).tat()
	if b.lost(tat, now) {
		tat = 0
	}
	queued = l.queue.waiters.Len()
	for e := l.queue.waiters.Front(); e != nil; e = e.Next() {
		next := tat + e.Value.(*waiter).n*b.interval
		if next-b.full > now.units {
			break
		}
		tat = next
		queued--
	}
	return b.cfg, b.tokens(b.balance(tat, now.units)), queued
}
