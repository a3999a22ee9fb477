package redislimit

import (
	"context"
	"fmt"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
)

// Acquire takes 1 token, as Wait does. A permit that is settled with leaf.NotRun gives it back.
func (l *Limiter) Acquire(ctx context.Context) (leaf.Permit, error) { return l.permit(ctx, false) }

// TryAcquire takes 1 token that is there, or refuses; it overtakes nobody who waits in this process.
func (l *Limiter) TryAcquire(ctx context.Context) (leaf.Permit, error) { return l.permit(ctx, true) }

func (l *Limiter) permit(ctx context.Context, try bool) (leaf.Permit, error) {
	l.store.Repanic()
	token, err := l.take(ctx, 1, try)
	if err != nil {
		return leaf.Permit{}, err
	}
	return leaf.NewPermit(l, token), nil
}

// AllowN takes n tokens if they are there: nil, a *ratelimit.LimitedError, what the outage policy says (a *leaf.StoreError, which
// is a refusal, too), ctx's own error, or for n < 0 and n > Burst a usage error (no refusal) that names n and Burst. n = 0 is
// free. It waits for the store, never for tokens, and overtakes nobody who waits in this process; a refusal costs nothing.
func (l *Limiter) AllowN(ctx context.Context, n int) error {
	l.store.Repanic()
	_, err := l.take(ctx, n, true)
	return err
}

// Wait takes n tokens, waiting for them in turn. What does not fit MaxWait or ctx's deadline is refused now, costs nothing,
// and says how long it would take, those of this process that wait in front included. When ctx ends the wait, the tokens go
// back, and the error is ctx's own. Other errors are those of AllowN.
//
// A wait of exactly MaxWait fits; one that would end exactly at ctx's deadline does not. MaxWait counts from the store's first
// answer. Who waits is refused later only if other processes take so much that its wait grows beyond MaxWait by more than
// Options.Timeout: processes compete for each token, in each the first of its line.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	l.store.Repanic()
	_, err := l.take(ctx, n, false)
	return err
}

// take is every way in; token is the permit's.
func (l *Limiter) take(ctx context.Context, n int, try bool) (token uint64, err error) {
	if err := ended.Err(ctx); err != nil {
		return 0, err
	}
	r, err := l.join(ctx, int64(n), try)
	if r == nil {
		return fromStore, err
	}
	if err := l.await(ctx, r); err != nil {
		return 0, err
	}
	switch r.fate {
	case byPolicy:
		return fromNowhere, nil
	case byFallback:
		return r.fallback.take(l.within(ctx, r), r)
	}
	return fromStore, nil
}

// await waits until r has its answer, or ctx is done. Whatever unwinds it, the place and the tokens are not lost.
func (l *Limiter) await(ctx context.Context, r *request) error {
	answered := false
	defer func() {
		if !answered {
			l.leave(r)
		}
	}()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	if err := ended.Err(ctx); err != nil { // wins over tokens that came in the same instant
		return err
	}
	<-r.done
	answered = true
	return r.err
}

func usageError(p policy, n int64) error {
	return fmt.Errorf("%s: n is %d: want 0 to %d (Burst)", check.Called("redislimit", p.cfg.Name), n, p.cfg.Burst)
}
