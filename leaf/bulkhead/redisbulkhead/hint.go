package redisbulkhead

import (
	"context"
	"strings"
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

// hear polls as soon as a hint names this process. Nothing hangs on it: without hints a wait takes a poll longer.
func (b *Bulkhead) hear(ctx context.Context) {
	hints := b.store.Client().Subscribe(ctx, b.store.Key()) // a connection of its own, made anew when it fails
	defer func() { _ = hints.Close() }()
	// A read for a message looks at no context; that its connection is closed ends it.
	defer context.AfterFunc(ctx, func() { _ = hints.Close() })()
	for ctx.Err() == nil {
		m, err := hints.ReceiveMessage(ctx)
		if err != nil {
			pause := time.NewTimer(jitter(deaf))
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
			continue
		}
		if named(m.Payload, b.id) {
			b.hinted()
		}
	}
}

// named looks for id among ids, which have all its length.
func named(ids, id string) bool {
	for ; len(ids) >= len(id); ids = ids[len(id):] {
		if strings.HasPrefix(ids, id) {
			return true
		}
	}
	return false
}

func (b *Bulkhead) hinted() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting > 0 {
		b.soon(time.Now())
	}
}
