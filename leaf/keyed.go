package leaf

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/ended"
)

// Keyed is one guard per key: per tenant, per host.
//
// key finds a call's key in its context; make builds the key's guard on first use (once per key, outside every lock of
// other keys; its error is returned by Acquire and not remembered). At most max guards exist, max from 1. To make room,
// one is dropped that no admitted or waiting call uses and that idle reports as having no history worth keeping;
// when there is none, a call with a new key is refused with an error whose Rejected() is true: a guard that
// still owes something is never forgotten.
// What idle must not wait for is a call: a key that nobody asks for any more gets none. Of a breaker it is State() != breaker.Open
// (an open circuit is over by itself after its open time, a half-open one stays so until somebody probes it; with == breaker.Closed
// the hosts that died fill the table for good), of a bulkhead InUse() == 0, of a cooldown Wait() == 0, of a limiter a full bucket.
// A max below 1 or a nil function is an error of every Acquire. Safe for concurrent use.
// The result is a [Trier], [Peeker], [Hinter], [Leaser], [Occupier] and [Timed] as far as G is.
//
// G is the static type: make(K) (*bulkhead.Bulkhead, error) keeps what a bulkhead can do, make(K) (leaf.Guard, error) hides
// it. Where a pipeline asks before the first guard exists, the careful answer is given: an Occupier occupies, a Timed wants
// Took; Lease is the shortest of the guards that exist, 0 without one.
//
// It hides the clock of its guards from a pipeline's Build, which finds no guard to ask: that they are on the clock of the
// other layers is make's to see to. A pipeline whose other layers name no clock is on real time.
//
// Calls that meet while their key's guard is being made wait for it (TryAcquire too: it is made, not asked) as long as
// their ctx lives, and share make's error; when make panics, the next of them tries. Room is sought only once max guards
// exist; it asks idle about at most all of them. The functions run outside every lock, idle at any time: all three
// must be safe for concurrent use, and make and idle must not use this guard. A key that is not equal to itself (NaN) is an
// error. The result is an [Inspector] too: kind "keyed", gauges "keys" (limit max) and "in_use", the calls inside.
func Keyed[K comparable, G Guard](max int, key func(context.Context) K, make func(K) (G, error), idle func(G) bool) Guard {
	k := &keyed[K, G]{
		key: key, bad: keyedErr(max, key == nil, make == nil, idle == nil),
		hints: is[G, Hinter](), leases: is[G, Leaser](), occupies: is[G, Occupier](), timed: is[G, Timed](),
	}
	k.guards.init(max, make, idle)
	switch tries, peeks := is[G, Trier](), is[G, Peeker](); {
	case tries && peeks:
		return tryPeekKeyed[K, G]{k}
	case tries:
		return tryKeyed[K, G]{k}
	case peeks:
		return peekKeyed[K, G]{k}
	}
	return k
}

func keyedErr(max int, noKey, noMake, noIdle bool) error {
	var l check.List
	if max < 1 {
		l.Bad("leaf", "Keyed's max", max, "1 or more")
	}
	for _, f := range []struct {
		name string
		none bool
	}{{"key", noKey}, {"make", noMake}, {"idle", noIdle}} {
		if f.none {
			l.Bad("leaf", "Keyed's "+f.name, "nil", "a function")
		}
	}
	return l.Err()
}

// is says that every G is an I, by G's method set alone: no G exists yet.
func is[G, I any]() bool { return reflect.TypeFor[G]().Implements(reflect.TypeFor[I]()) }

// keyed answers for every G. What has no neutral answer (TryAcquire, Peek) is added by the types below; Hint without a
// Hinter is nothing, Lease 0 is "until settled", Occupies and WantsTook are false for any other guard too.
type keyed[K comparable, G Guard] struct {
	key    func(context.Context) K
	bad    error // of the configuration
	guards table[K, G]

	hints, leases, occupies, timed bool // what G is
}

func (k *keyed[K, G]) Acquire(ctx context.Context) (Permit, error) { return k.acquire(ctx, false) }

func (k *keyed[K, G]) acquire(ctx context.Context, try bool) (Permit, error) {
	a, err := k.enter(ctx)
	if err != nil {
		return Permit{}, err
	}
	admitted := false
	defer func() {
		if !admitted { // refused, or the guard panicked
			a.leave()
		}
	}()
	if try {
		a.permit, err = a.entry.as.(Trier).TryAcquire(ctx)
	} else {
		a.permit, err = a.entry.guard.Acquire(ctx)
	}
	if err != nil {
		return Permit{}, err
	}
	admitted = true
	return NewPermit(a, a.turn.Load()), nil
}

func (k *keyed[K, G]) enter(ctx context.Context) (*admission[K, G], error) {
	if k.bad != nil {
		return nil, k.bad
	}
	if err := ended.Err(ctx); err != nil {
		return nil, err
	}
	key := k.key(ctx)
	if !equal(key, key) {
		return nil, errors.New("leaf: Keyed: the key is not equal to itself (NaN): no guard could be found again")
	}
	return k.guards.enter(ctx, key)
}

// equal also panics for a key of an uncomparable dynamic type, while no lock is held.
func equal[K comparable](a, b K) bool { return a == b }

func (k *keyed[K, G]) peek(ctx context.Context) error {
	if k.bad != nil {
		return nil // an error, no refusal
	}
	key := k.key(ctx)
	if !equal(key, key) {
		return nil
	}
	e := k.guards.lookup(key)
	switch {
	case e == nil && !k.guards.hasRoom():
		return &noRoomError{k.guards.max}
	case e == nil || !e.made():
		return nil
	}
	return e.as.(Peeker).Peek(ctx)
}

// Hint reaches a guard that was dropped since its call, too: it is made anew, where there is room.
func (k *keyed[K, G]) Hint(ctx context.Context, wait time.Duration) {
	if wait <= 0 || !k.hints {
		return
	}
	ctx = context.WithoutCancel(ctx) // what the other side asked for holds, whether the caller is still there or not
	a, err := k.enter(ctx)
	if err != nil {
		return
	}
	defer a.leave()
	a.entry.as.(Hinter).Hint(ctx, wait)
}

func (k *keyed[K, G]) Lease() time.Duration {
	if !k.leases {
		return 0
	}
	var shortest time.Duration
	for _, e := range k.guards.list() {
		if !e.made() {
			continue
		}
		if d := e.as.(Leaser).Lease(); d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

func (k *keyed[K, G]) Occupies() bool  { return k.occupies }
func (k *keyed[K, G]) WantsTook() bool { return k.timed }

func (k *keyed[K, G]) Inspect() Snapshot {
	keys, inside := k.guards.count()
	return Snapshot{Kind: "keyed", Gauges: []Gauge{
		{Name: "keys", Value: float64(keys), Limit: float64(max(0, k.guards.max))},
		{Name: "in_use", Value: float64(inside)},
	}}
}

type (
	tryKeyed[K comparable, G Guard]     struct{ *keyed[K, G] }
	peekKeyed[K comparable, G Guard]    struct{ *keyed[K, G] }
	tryPeekKeyed[K comparable, G Guard] struct{ *keyed[K, G] }
)

func (k tryKeyed[K, G]) TryAcquire(ctx context.Context) (Permit, error) { return k.acquire(ctx, true) }
func (k tryPeekKeyed[K, G]) TryAcquire(ctx context.Context) (Permit, error) {
	return k.acquire(ctx, true)
}
func (k peekKeyed[K, G]) Peek(ctx context.Context) error    { return k.peek(ctx) }
func (k tryPeekKeyed[K, G]) Peek(ctx context.Context) error { return k.peek(ctx) }

// noRoomError is the refusal of a new key. It does not name the key, which may be anybody's secret.
type noRoomError struct{ max int }

func (e *noRoomError) Error() string {
	return fmt.Sprintf("leaf: Keyed: no room for another key: all %d guards are in use or have a history to keep", e.max)
}

// Rejected is true.
func (e *noRoomError) Rejected() bool { return true }

// RetryAfter is unknown.
func (e *noRoomError) RetryAfter() (time.Duration, bool) { return 0, false }
