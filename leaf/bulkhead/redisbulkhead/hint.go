package redisbulkhead

import (
	"context"
	"time"
)

// deaf is how long nobody listens after the connection for hints failed.
const deaf = time.Second

// listen begins to listen to hints, if this process waits and does not listen yet. Under mu.
func (b *Bulkhead) listen() {
	e := &b.engine
	if !e.registered || e.listener != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	if !b.store.Go(func(closing context.Context) {
		defer cancel()
		defer context.AfterFunc(closing, cancel)()
		b.hear(ctx)
	}) {
		cancel()
		return
	}
	e.listener, e.lastWait = cancel, time.Now()
}

// channel is where this process hears that it is its turn. It has one of its own, so that nobody wakes for another's.
func (b *Bulkhead) channel() string { return b.store.Key() + ":" + b.id }

// hear polls as soon as there is a hint. Nothing hangs on it: without hints a wait takes a poll longer.
func (b *Bulkhead) hear(ctx context.Context) {
	hints := b.store.Client().Subscribe(ctx, b.channel()) // a connection of its own, made anew when it fails
	defer func() { _ = hints.Close() }()
	// A read for a message looks at no context; that its connection is closed ends it.
	defer context.AfterFunc(ctx, func() { _ = hints.Close() })()
	for ctx.Err() == nil {
		if _, err := hints.ReceiveMessage(ctx); err != nil {
			pause := time.NewTimer(jitter(deaf))
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
			continue
		}
		b.hinted()
	}
}

func (b *Bulkhead) hinted() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting > 0 {
		b.soon(time.Now())
	}
}
