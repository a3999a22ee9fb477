package redisbulkhead

import (
	"errors"
	"math"
	"time"
)

// endless is an end that no clock reaches.
const endless = math.MaxInt64

// errOver ends a wait at its MaxWait; the caller makes the refusal of it.
var errOver = errors.New("MaxWait is over")

// ends is the end of many waits with one timer: a timer for each would cost more than a hand-over. It is for real time alone; an
// injected clock has a timer per wait, which tests can count, and whose panic is the caller's. Guarded by the bulkhead's mu.
type ends struct {
	calls list
	timer *time.Timer // nil = none runs
	at    int64       // when it fires, by the clock
}

// count has c's wait ended in time. Whoever comes later mostly ends later, too: after an Update alone it is not so. Under mu.
func (b *Bulkhead) count(c *call) {
	if c.ends == endless {
		return
	}
	e := &b.ends
	prev := e.calls.back
	for prev != nil && prev.ends > c.ends {
		prev = e.calls.prev(prev)
	}
	e.calls.insert(c, prev)
	if e.timer == nil || c.ends < e.at {
		b.ring()
	}
}

// discount forgets c. The timer goes on for whoever is left: it finds out that it is too early. Under mu.
func (b *Bulkhead) discount(c *call) {
	if c.ends == endless {
		return
	}
	e := &b.ends
	e.calls.remove(c)
	if e.calls.n == 0 && e.timer != nil {
		e.timer.Stop() // one that fires in this instant finds nobody
		e.timer = nil
	}
}

// ring sets the timer for the first end. Under mu.
func (b *Bulkhead) ring() {
	e := &b.ends
	if e.timer != nil {
		e.timer.Stop()
	}
	e.at = e.calls.front.ends
	e.timer = time.AfterFunc(time.Duration(e.at-b.clock.Now()), b.over)
}

// over ends the waits whose end has come.
func (b *Bulkhead) over() {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &b.ends
	now := b.clock.Now()
	for e.calls.n > 0 && e.calls.front.ends <= now {
		b.refuse(e.calls.front, errOver)
	}
	if e.calls.n > 0 {
		b.ring()
	}
	b.deserted()
}
