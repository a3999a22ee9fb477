package redislimit

import (
	"context"

	"github.com/fairlead/fairlead/leaf"
)

// settler waits for its refund to be recorded.
type settler struct {
	n    int64
	err  error // written before done is closed
	done chan struct{}
}

// Settle gives back the token of a call that did not run (leaf.NotRun), never above Burst, to where it came from; any other
// outcome costs nothing. It rides on the next store call and returns when that is over, whatever became of ctx; a refund that
// the store did not hear of is its error, a *leaf.StoreError, and goes with a later call where that is safe.
// Called by the permit alone.
func (l *Limiter) Settle(ctx context.Context, token uint64, o leaf.Outcome) error {
	if o.Verdict != leaf.NotRun || token == fromNowhere {
		return nil
	}
	l.mu.Lock()
	if token >= firstFallback {
		f := l.fallback
		l.mu.Unlock()
		if f == nil || f.id != token {
			return nil // of an outage that is over: its limiter, too
		}
		return f.local.Settle(ctx, 0, o)
	}
	if l.stash < int64(l.opts.Prefetch) && len(l.line) == 0 && !l.closed {
		l.stash++ // where it was taken from, or might have been
		l.mu.Unlock()
		return nil
	}
	s := &settler{n: 1, done: make(chan struct{})}
	l.settlers = append(l.settlers, s)
	l.poke = true
	start := l.starts()
	l.mu.Unlock()
	l.launch(start)
	<-s.done
	return s.err
}
