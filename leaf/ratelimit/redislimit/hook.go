package redislimit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/mailbox"
	"github.com/fairlead/fairlead/leaf"
)

// hook calls OnStore in a goroutine of its own: the store tells its events in the middle of the one call that everybody rides
// on, and a hook may be slow, or call this limiter.
type hook struct {
	events mailbox.Box[storeEvent]
	panics atomic.Pointer[any] // the first of OnStore
}

type storeEvent struct {
	ctx  context.Context
	e    leaf.StoreEvent
	told chan struct{}
}

// patient is how long the flight waits for a hook: one that is quick has been told before the calls get their answer.
const patient = 2 * time.Millisecond

func (l *Limiter) tell(ctx context.Context, e leaf.StoreEvent) {
	told := make(chan struct{})
	l.hook.events.Put(storeEvent{ctx, e, told})
	if !l.store.Go(func(context.Context) { l.hook.events.Deliver(l.call) }) {
		l.hook.events.Deliver(l.call) // closed: nobody rides any more
		return
	}
	timer := time.NewTimer(patient)
	defer timer.Stop()
	select {
	case <-told:
	case <-timer.C:
	}
}

func (l *Limiter) call(ev storeEvent) {
	defer close(ev.told)
	defer func() {
		if v := recover(); v != nil {
			l.hook.panics.CompareAndSwap(nil, &v)
		}
	}()
	l.opts.OnStore(ev.ctx, ev.e)
}

// repanic goes on with a hook's panic where nothing is held.
func (l *Limiter) repanic() {
	if l.hook.panics.Load() == nil {
		return
	}
	if v := l.hook.panics.Swap(nil); v != nil {
		panic(*v)
	}
}
