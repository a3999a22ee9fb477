package redisscript

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/fairlead/fairlead/internal/mailbox"
	"github.com/fairlead/fairlead/leaf"
)

// trips is how many failures in a row open the store's breaker.
const trips = 5

var errOpen = errors.New("store breaker open")

// openError is what calls get while the breaker is open; it is the same one for all.
type openError struct {
	last error
	over chan struct{} // closed with the breaker
}

func (e *openError) Error() string { return fmt.Sprintf("%v after: %v", errOpen, e.last) }

// Unwrap is errOpen alone: the last error is another call's, and its class too.
func (e *openError) Unwrap() error { return errOpen }

// health is what is known of the store: whether the last call failed (an outage: the policy decides), and whether so many
// failed in a row that asking is a waste of time (the breaker is open).
//
// Only failures that probing will get over count for the breaker: silence, broken connections, a server that serves nobody. One
// that answers and will not do this one thing (a key of a wrong type, no memory) is asked again every time.
type health struct {
	name    string
	policy  leaf.Outage
	onStore leaf.OnStore

	open    atomic.Pointer[openError] // nil = closed
	trouble atomic.Bool               // not everything is well: a success has something to say
	kick    chan struct{}             // a sign of life, for the prober

	mu     sync.Mutex
	fails  int // in a row, no more than trips
	down   bool
	op     string // that began the outage
	events mailbox.Box[event]
	panics atomic.Pointer[any] // the first of a hook

	reloaded atomic.Int64 // when a Cluster's map was last asked for; 0 = never
	scouting atomic.Bool  // somebody asks the other masters
}

type event struct {
	ctx context.Context
	e   leaf.StoreEvent
}

func (h *health) init(name string, opts Options) {
	h.name, h.policy, h.onStore = name, opts.OnOutage, opts.OnStore
	h.kick = make(chan struct{}, 1)
}

// refuses is nil while the breaker is closed.
func (h *health) refuses() error {
	if e := h.open.Load(); e != nil {
		return e
	}
	return nil
}

func (h *health) isDown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.down
}

// failed gives the breaker's opening if it has opened just now: then the caller starts its prober.
func (h *health) failed(ctx context.Context, op string, err error) (opened *openError) {
	h.mu.Lock()
	h.trouble.Store(true)
	if classify(err).answered {
		h.fails = 0
	} else {
		h.fails = min(h.fails+1, trips)
	}
	if h.fails == trips && h.open.Load() == nil {
		opened = &openError{last: err, over: make(chan struct{})}
		h.open.Store(opened)
	}
	if !h.down {
		h.down, h.op = true, op
		h.put(ctx, leaf.StoreEvent{Name: h.name, Kind: "failed", Op: op, Policy: h.policy, Err: err})
	}
	h.mu.Unlock()
	h.deliver()
	return opened
}

// succeeded closes the breaker and ends the outage.
func (h *health) succeeded(ctx context.Context, op string) {
	if !h.trouble.Load() {
		return
	}
	h.mu.Lock()
	h.trouble.Store(false)
	h.reset()
	if h.down {
		h.down = false
		if op == "" { // a probe's
			op = h.op
		}
		h.put(ctx, leaf.StoreEvent{Name: h.name, Kind: "recovered", Op: op, Policy: h.policy})
	}
	h.mu.Unlock()
	h.deliver()
}

// abandon closes a breaker that nobody will probe, since the store is closed.
func (h *health) abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reset()
}

// reset is called under mu.
func (h *health) reset() {
	h.fails = 0
	if e := h.open.Swap(nil); e != nil {
		close(e.over)
	}
}

// hint: a call that was left behind succeeded, so the store may work again. That it was late may also be what is wrong with it:
// a probe has to find out.
func (h *health) hint() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

func (h *health) tell(ctx context.Context, e leaf.StoreEvent) {
	h.mu.Lock()
	h.put(ctx, e)
	h.mu.Unlock()
	h.deliver()
}

// put is called under mu, which orders the events.
func (h *health) put(ctx context.Context, e leaf.StoreEvent) {
	if h.onStore != nil {
		h.events.Put(event{context.WithoutCancel(ctx), e})
	}
}

func (h *health) deliver() {
	if h.onStore != nil {
		h.events.Deliver(h.call)
	}
}

// call holds a hook's panic back until repanic. The hook has a goroutine of its own, which runtime.Goexit may end: whoever waits
// for it here may be the one that carries a guard's calls.
func (h *health) call(ev event) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		defer func() {
			if v := recover(); v != nil {
				h.panics.CompareAndSwap(nil, &v)
			}
		}()
		h.onStore(ev.ctx, ev.e)
	}()
	<-told
}

func (h *health) repanic() {
	if h.panics.Load() == nil {
		return
	}
	if v := h.panics.Swap(nil); v != nil {
		panic(*v)
	}
}
