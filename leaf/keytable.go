package leaf

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/ended"
)

// table is Keyed's guards: who is in, who may go, who is being made. Lock order: table, then entry.
// No function of the user's runs under a lock.
type table[K comparable, G Guard] struct {
	max  int
	make func(K) (G, error)
	idle func(G) bool

	mu    sync.RWMutex
	byKey map[K]*entry[K, G]
	all   []*entry[K, G] // the same entries, in an order that a search can walk without keeping the lock
	hand  int            // where the next search for room begins
}

// entry is one key's guard and who is inside.
type entry[K comparable, G Guard] struct {
	key   K
	index int           // in table.all; under table.mu
	ready chan struct{} // closed once the four below are final
	ok    bool
	guard G
	as    any         // guard again, boxed once
	err   error       // make's; nil without ok: make panicked
	there atomic.Bool // ok, for all who come later: a channel that was made in a testing/synctest bubble can be asked only there

	mu      sync.Mutex
	inside  int    // calls admitted, waiting, or waiting for make
	entered uint64 // how many ever: what idle said is old news once it has changed
	free    *admission[K, G]
}

// admission is one call inside an entry, and the Settler of the permit that the call gets. It is used again, so that a
// permit costs no allocation; turn tells one use from the next.
type admission[K comparable, G Guard] struct {
	entry  *entry[K, G]
	permit Permit // the guard's own
	turn   atomic.Uint64
	next   *admission[K, G] // in entry.free
}

func (t *table[K, G]) init(max int, make func(K) (G, error), idle func(G) bool) {
	t.max, t.make, t.idle, t.byKey = max, make, idle, map[K]*entry[K, G]{}
}

// enter brings a call to its key's guard. Whoever gets an admission settles it or leaves.
func (t *table[K, G]) enter(ctx context.Context, key K) (*admission[K, G], error) {
	for {
		a, first := t.find(key)
		switch {
		case a == nil:
			return nil, &noRoomError{t.max}
		case first:
			if err := t.fill(a); err != nil {
				return nil, err
			}
			return a, nil
		}
		e := a.entry
		if !e.made() {
			select {
			case <-e.ready:
			case <-ctx.Done():
				a.leave()
				return nil, ended.Err(ctx)
			}
			if !e.ok {
				a.leave()
				if e.err != nil {
					return nil, e.err
				}
				continue // make panicked on somebody else's goroutine: this call's turn
			}
		}
		return a, nil
	}
}

// find enters key's entry; first = it is new, and the caller has to fill it. Nil = there is none and no room.
func (t *table[K, G]) find(key K) (a *admission[K, G], first bool) {
	t.mu.RLock()
	if e := t.byKey[key]; e != nil {
		a = e.enter()
	}
	t.mu.RUnlock()
	if a != nil {
		return a, false
	}
	if a, first = t.place(key, nil, 0); a != nil {
		return a, first
	}
	from, _ := t.places()
	for i := 0; a == nil && i < t.max; i++ {
		if e, entered := t.unused(from + i); e != nil && t.idle(e.guard) {
			a, first = t.place(key, e, entered)
		}
	}
	return a, first
}

// place enters key's entry, new where there is room, or else in the place of victim if that is still as idle was asked.
func (t *table[K, G]) place(key K, victim *entry[K, G], entered uint64) (a *admission[K, G], first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byKey[key]; e != nil {
		return e.enter(), false
	}
	index := len(t.all)
	switch {
	case index < t.max:
		t.all = append(t.all, nil)
	case victim == nil || t.byKey[victim.key] != victim || !victim.untouched(entered):
		return nil, false
	default:
		index = victim.index
		t.hand = index + 1 // so that the newest is the last to go
		delete(t.byKey, victim.key)
	}
	e := &entry[K, G]{key: key, index: index, ready: make(chan struct{})}
	t.all[index], t.byKey[key] = e, e
	return e.enter(), true
}

// remove takes out an entry that got no guard, and closes the gap with the last one. Under t.mu.
func (t *table[K, G]) remove(e *entry[K, G]) {
	last := len(t.all) - 1
	t.all[e.index] = t.all[last]
	t.all[e.index].index = e.index
	t.all[last] = nil
	t.all = t.all[:last]
	delete(t.byKey, e.key)
}

// fill makes the guard of an entry that a just brought in. However make ends, everybody who waits for it is told; when it
// gives no guard, the entry is gone before, so that the next call of this key begins anew.
func (t *table[K, G]) fill(a *admission[K, G]) error {
	e := a.entry
	defer func() {
		if !e.ok {
			t.mu.Lock()
			t.remove(e)
			t.mu.Unlock()
			a.leave()
		}
		close(e.ready)
	}()
	g, err := t.make(e.key)
	if err == nil && check.Nil(g) {
		err = errors.New("leaf: Keyed: make returned neither a guard nor an error")
	}
	if err != nil {
		e.err = err
		return err
	}
	e.guard, e.as, e.ok = g, g, true
	e.there.Store(true)
	return nil
}

// places is where a search begins, and how many entries there are.
func (t *table[K, G]) places() (hand, n int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.hand, len(t.all)
}

// unused is the entry at place i, round and round, if nobody is inside.
func (t *table[K, G]) unused(i int) (e *entry[K, G], entered uint64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.all) == 0 {
		return nil, 0
	}
	e = t.all[i%len(t.all)]
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inside > 0 {
		return nil, 0
	}
	return e, e.entered
}

// hasRoom says whether a new key would get a place. It changes nothing.
func (t *table[K, G]) hasRoom() bool {
	from, n := t.places()
	if n < t.max {
		return true
	}
	for i := range t.max {
		if e, _ := t.unused(from + i); e != nil && t.idle(e.guard) {
			return true
		}
	}
	return false
}

func (t *table[K, G]) lookup(key K) *entry[K, G] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byKey[key]
}

func (t *table[K, G]) list() []*entry[K, G] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return append([]*entry[K, G](nil), t.all...)
}

func (t *table[K, G]) count() (keys, inside int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, e := range t.all {
		e.mu.Lock()
		inside += e.inside
		e.mu.Unlock()
	}
	return len(t.all), inside
}

// made says that the guard is there.
func (e *entry[K, G]) made() bool {
	return e.there.Load()
}

// enter counts a call in. Under table.mu, so that nobody enters what is being dropped.
func (e *entry[K, G]) enter() *admission[K, G] {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inside++
	e.entered++
	a := e.free
	if a == nil {
		return &admission[K, G]{entry: e}
	}
	e.free, a.next = a.next, nil
	return a
}

// untouched says that nobody entered since unused found nobody inside; so nobody is inside now.
func (e *entry[K, G]) untouched(entered uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.entered == entered
}

// leave counts a call out.
func (a *admission[K, G]) leave() {
	e := a.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	a.next, e.free = e.free, a
	e.inside--
}

// Settle passes the outcome on, and leaves also when the guard panics. A token of an earlier use changes nothing.
func (a *admission[K, G]) Settle(ctx context.Context, token uint64, o Outcome) error {
	if !a.turn.CompareAndSwap(token, token+1) {
		return nil
	}
	defer a.leave()
	return a.permit.Settle(ctx, o)
}
