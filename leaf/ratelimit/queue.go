package ratelimit

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
)

// queue is who waits for tokens. Waiters hold none: the bucket counts what was handed out alone, so that one who leaves has
// nothing to undo for those behind it, whose turn simply comes earlier.
type queue struct {
	mu      sync.Mutex
	waiters list.List // of *waiter, the first to be served in front; empty = the bucket's waiting bit is clear
	wanted  int64     // tokens that the waiters want, together
	alarm   *alarm    // goes off when the first is due; nil without waiters
}

// waiter is one call in the queue. ready is closed once, when it has left the queue by being served, or refused with err.
type waiter struct {
	n     int64
	last  int64 // the clock's reading at which its patience ends
	ready chan struct{}
	place *list.Element
	state state // under the queue's mu
	err   error // written before ready is closed
}

type state uint8

const (
	queued state = iota
	served
	refused
)

type alarm struct {
	due  int64
	stop func() bool
}

// locked runs f under the lock, at an instant whose consequences have been drawn: who was due is served, and the bucket is
// one that counts it. Afterwards the alarm is set for whoever is the first then.
func (l *Limiter) locked(f func(b *bucket, now instant)) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	b, now := l.catchUp()
	f(b, now)
	b = l.bucket.Load()
	l.arm(b, b.at(now.reading))
}

// join takes n tokens if they are there (nil, nil), takes a place in the queue if that serves them within most, or refuses
// with the wait that it would take, those in front included.
func (l *Limiter) join(n int64, most time.Duration) (w *waiter, err error) {
	l.locked(func(b *bucket, now instant) {
		if n > int64(b.cfg.Burst) { // lowered since the caller looked
			err = usageError(b, n)
			return
		}
		var wait time.Duration
		if l.queue.waiters.Len() > 0 {
			wait = b.wait(word(b.word.Load()).tat(), now, l.queue.wanted+n)
		} else if wait = l.takeOrClose(b, now, n, most); wait == 0 {
			return
		}
		if wait < 0 || wait > most {
			err = limited(b, wait)
			return
		}
		w = &waiter{n: n, last: clock.Add(now.reading, most), ready: make(chan struct{})}
		w.place = l.queue.waiters.PushBack(w)
		l.queue.wanted += n
	})
	return w, err
}

// takeOrClose takes n tokens (0), or tells their wait and, if it is within most, closes the way past the queue in the very
// instant in which they were not there. With nobody in the queue.
func (l *Limiter) takeOrClose(b *bucket, now instant, n int64, most time.Duration) (wait time.Duration) {
	for {
		w := word(b.word.Load())
		next := w | waiting
		tat, ok := b.policy.take(w.tat(), now.units, n)
		switch {
		case ok:
			next, wait = wordOf(tat), 0
		default:
			if wait = b.wait(w.tat(), now, n); wait < 0 || wait > most {
				return wait
			}
		}
		if b.word.CompareAndSwap(int64(w), int64(next)) {
			return wait
		}
	}
}

// await waits until w is served or refused, or ctx is done. Whatever unwinds it, the place and the tokens are not lost.
func (l *Limiter) await(ctx context.Context, w *waiter) error {
	settled := false
	defer func() {
		if !settled {
			l.leave(w)
		}
	}()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	if err := ended.Err(ctx); err != nil { // wins over tokens that came in the same instant
		return err
	}
	<-w.ready
	settled = true
	return w.err
}

// leave takes w out, wherever it stands: its place is free, or the tokens that it was just given go back.
func (l *Limiter) leave(w *waiter) {
	l.locked(func(b *bucket, now instant) {
		switch w.state {
		case queued:
			l.drop(w)
			l.serve(b, now)
		case served:
			l.giveBack(b, now, w.n)
		}
	})
}

// giveBack refunds n tokens, and serves whoever they are enough for.
func (l *Limiter) giveBack(b *bucket, now instant, n int64) {
	for {
		w := word(b.word.Load())
		tat := b.give(w.tat(), n)
		if w&waiting != 0 {
			tat = max(tat, now.units) // never above Burst: serve counts on from here, not from now
		}
		if b.word.CompareAndSwap(int64(w), int64(wordOf(tat)|w&waiting)) {
			break
		}
	}
	l.serve(b, now)
}

// drop takes w out of the list.
func (l *Limiter) drop(w *waiter) {
	l.queue.waiters.Remove(w.place)
	l.queue.wanted -= w.n
}

// first is the next to be served; nil = nobody waits.
func (l *Limiter) first() *waiter {
	if e := l.queue.waiters.Front(); e != nil {
		return e.Value.(*waiter)
	}
	return nil
}

// serve gives each waiter that is due its tokens, as of the instant at which it was due: a late timer costs no rate.
func (l *Limiter) serve(b *bucket, now instant) {
	for w := l.first(); w != nil; w = l.first() {
		tat := word(b.word.Load()).tat() + w.n*b.interval
		if tat-b.full > now.units {
			return
		}
		b.word.Store(int64(wordOf(tat) | waiting)) // the bit is set: the word is ours
		l.drop(w)
		w.state = served
		close(w.ready)
	}
	b.word.And(^int64(waiting))
}

// arm sets the alarm for the first in the queue.
func (l *Limiter) arm(b *bucket, now instant) {
	old, w := l.queue.alarm, l.first()
	if w == nil {
		if old != nil {
			old.stop()
			l.queue.alarm = nil
		}
		return
	}
	wait := b.wait(word(b.word.Load()).tat(), now, w.n)
	due := clock.Add(now.reading, wait)
	if old != nil {
		if old.due == due {
			return
		}
		old.stop()
	}
	a := &alarm{due: due}
	l.queue.alarm = a
	a.stop = l.clock.AfterFunc(wait, func() { l.ring(a) })
}

// ring is the alarm a going off; one that was stopped too late does no harm.
func (l *Limiter) ring(a *alarm) {
	l.locked(func(*bucket, instant) {
		if l.queue.alarm == a {
			l.queue.alarm = nil
		}
	})
}
