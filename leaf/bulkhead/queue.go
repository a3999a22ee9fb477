package bulkhead

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// queue is the slots and who waits for them; it knows nothing of time and contexts.
//
// While the waiting bit is set, free slots become fewer under mu alone; they become more at any time, and whoever returned
// one and then sees the bit looks after the queue.
type queue struct {
	word atomic.Int64 // a word

	mu      sync.Mutex
	waiters list.List // of *waiter, the first to be served in front; empty = the waiting bit is clear
}

// waiter is one call in the queue. Its fields are guarded by the queue's mu; ready is closed once, when it is granted.
type waiter struct {
	ready   chan struct{}
	place   *list.Element
	granted bool
}

// take takes a slot in passing, if one is free and nobody waits for it.
func (q *queue) take() bool {
	for {
		w := word(q.word.Load())
		next, ok := w.take()
		if !ok {
			return false
		}
		if q.word.CompareAndSwap(int64(w), int64(next)) {
			return true
		}
	}
}

// give returns a slot.
func (q *queue) give() {
	if word(q.word.Add(int64(slot)))&waiting != 0 {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.serve()
	}
}

// join takes a slot or a place in the queue: nil and true for a slot, a waiter for a place, nil and false for neither.
// most is how many may wait; 0 = any number.
func (q *queue) join(most int) (w *waiter, taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serve() // a slot may be on its way back to the queue while its giver waits for mu
	if q.waiters.Len() == 0 && q.takeOrClose() {
		return nil, true
	}
	if most > 0 && q.waiters.Len() >= most {
		return nil, false
	}
	w = &waiter{ready: make(chan struct{})}
	w.place = q.waiters.PushBack(w)
	return w, false
}

// takeOrClose takes a free slot, or closes the way past the queue in the very instant in which there is none: from then on
// a slot that comes back finds the bit, and its giver waits for mu. Under mu, with nobody in the queue.
func (q *queue) takeOrClose() (taken bool) {
	for {
		w := word(q.word.Load())
		next, ok := w.take()
		if !ok {
			next = w | waiting
		}
		if q.word.CompareAndSwap(int64(w), int64(next)) {
			return ok
		}
	}
}

// leave takes w out, wherever it stands: its place is free, or the slot that it was just granted goes to the next.
func (q *queue) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.granted {
		q.word.Add(int64(slot))
	} else {
		q.waiters.Remove(w.place)
	}
	q.serve()
}

// resize adds slots, or takes some away as soon as they come back.
func (q *queue) resize(by int64) {
	q.word.Add(by * int64(slot))
	q.serve()
}

// serve hands what is free to the first in the queue, and clears the bit when the queue is empty. Under mu.
func (q *queue) serve() {
	for q.waiters.Len() > 0 && word(q.word.Load()).free() > 0 {
		w := q.waiters.Remove(q.waiters.Front()).(*waiter)
		q.word.Add(-int64(slot))
		w.granted = true
		close(w.ready)
	}
	if q.waiters.Len() == 0 {
		q.word.And(^int64(waiting))
	}
}
