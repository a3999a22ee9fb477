package bulkhead

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
)

// wait waits in the queue until w has a slot, MaxWait is over or ctx is done. Whatever unwinds it, be it a panic of the
// program's clock or context, the place in the queue and a slot granted meanwhile are not lost.
func (b *Bulkhead) wait(ctx context.Context, w *waiter, cfg *Config) error {
	admitted := false
	defer func() {
		if !admitted {
			b.queue.leave(w)
		}
	}()
	began := b.clock.Now()
	over, stop := b.timer(ctx, cfg.MaxWait)
	defer stop()
	select {
	case <-w.ready:
	case <-over:
	case <-ctx.Done():
	}
	// Several may have happened at once. A done ctx wins over the slot, the slot over the end of the wait.
	if err := ended.Err(ctx); err != nil {
		return err
	}
	select {
	case <-w.ready:
		admitted = true
		return nil
	default:
		return b.full(time.Duration(b.clock.Now() - began))
	}
}

// moment is what the timer of ctx may be late by, on a machine that is busy.
const moment = 5 * time.Millisecond

// timer fires when the wait is over. Where ctx says that it ends first, or in the same instant, its own timer gets a moment: whose
// end it is must not hang on which of the two is served first. Only a ctx whose Done does not keep its Deadline meets ours.
func (b *Bulkhead) timer(ctx context.Context, wait time.Duration) (over <-chan time.Time, stop func()) {
	if left, ok := b.clock.Left(ctx); ok && left <= wait && ctx.Done() != nil {
		wait = max(wait, left+moment)
	}
	t := b.clock.NewTimer(wait)
	return t.C, func() { t.Stop() }
}
