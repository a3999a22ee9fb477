package redisscript

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/mailbox"
	"github.com/fairlead/fairlead/leaf"
)

// aside calls a hook in a goroutine of its own, for guards whose calls all ride on one: a hook may be slow, or call its own guard,
// whose answer would come from the goroutine that waits for the hook.
type aside struct {
	store  *Store
	hook   leaf.OnStore
	events mailbox.Box[asideEvent]
}

type asideEvent struct {
	ctx  context.Context
	e    leaf.StoreEvent
	told chan struct{}
}

// hookPatience is how long the teller waits: a hook that is quick has been told before the calls get their answer.
const hookPatience = 2 * time.Millisecond

func (a *aside) tell(ctx context.Context, e leaf.StoreEvent) {
	told := make(chan struct{})
	a.events.Put(asideEvent{ctx, e, told})
	if !a.store.Go(func(context.Context) { a.events.Deliver(a.call) }) {
		go a.events.Deliver(a.call) // closed, but Close may not have waited for those who still ride
	}
	timer := time.NewTimer(hookPatience)
	defer timer.Stop()
	select {
	case <-told:
	case <-timer.C:
	}
}

func (a *aside) call(ev asideEvent) {
	defer close(ev.told)
	defer func() {
		if v := recover(); v != nil {
			a.store.health.panics.CompareAndSwap(nil, &v)
		}
	}()
	a.hook(ev.ctx, ev.e)
}
