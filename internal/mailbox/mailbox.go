// Package mailbox tells what was committed in commit order, one at a time, outside every lock.
//
// Whoever commits puts its message while it still holds the lock that orders the commits, and delivers after it has
// released it. The first one to deliver tells everything that is there, also what others put meanwhile; they do not wait.
// So a message may be told by another goroutine than the one that put it, and one that is put from inside a telling is
// told after that telling has returned: a hook may use what it hears of.
package mailbox

import "sync"

// Box is a queue of messages with at most one teller. The zero Box is empty and ready to use.
type Box[T any] struct {
	mu      sync.Mutex
	queue   []T
	telling bool
}

// Put adds a message. The order of the Puts is the order of the telling.
func (b *Box[T]) Put(v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, v)
}

// Deliver tells every message that is there and that comes meanwhile, unless somebody is at it already.
//
// A tell that panics or calls runtime.Goexit loses nothing and holds up nobody: the rest is told while it unwinds. Where
// several panic, the last one is the one that arrives (the runtime prints them all).
func (b *Box[T]) Deliver(tell func(T)) {
	if !b.begin() {
		return
	}
	b.drain(tell)
}

// begin makes the caller the teller, if there is anything to tell and nobody tells.
func (b *Box[T]) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.telling || len(b.queue) == 0 {
		return false
	}
	b.telling = true
	return true
}

// next takes the oldest message; without one the caller is no longer the teller.
func (b *Box[T]) next() (v T, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.queue, b.telling = nil, false
		return v, false
	}
	v = b.queue[0]
	var none T
	b.queue[0] = none // what was told must not be kept alive by the queue
	b.queue = b.queue[1:]
	return v, true
}

// drain stays the teller across a panic: nobody else may begin in between, or the order would be lost.
func (b *Box[T]) drain(tell func(T)) {
	drained := false
	defer func() {
		if !drained {
			b.drain(tell)
		}
	}()
	for {
		v, ok := b.next()
		if !ok {
			break
		}
		tell(v)
	}
	drained = true
}
