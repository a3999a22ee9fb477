package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/stretchr/testify/require"
)

// Calls, cancellations, panics and updates at once; what counts is the race detector, and that no token is lost.
func TestAPolicyUnderConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const capacity = 1 << 20
		pool := budget.MustNewTokens(budget.TokenConfig{Capacity: capacity})
		cfg := Config{MaxAttempts: 4, Backoff: Exponential(time.Millisecond), Budget: pool}
		r := mustNew(t, cfg)
		var (
			mu   sync.Mutex
			sent int // retries
			wg   sync.WaitGroup
		)
		for i := range 32 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 0))
				for range 200 {
					func() {
						defer func() { _ = recover() }()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if rng.IntN(3) == 0 {
							defer time.AfterFunc(time.Duration(rng.IntN(5_000_000)), cancel).Stop()
						}
						runs := 0
						_, err := Do(ctx, r, func(context.Context) (int, error) {
							if runs++; runs > 1 {
								mu.Lock()
								sent++
								mu.Unlock()
							}
							switch rng.IntN(10) {
							case 0:
								panic("boom")
							case 1, 2:
								return 1, nil
							}
							return 0, errA
						})
						if err != nil && !errors.Is(err, errA) && !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					}()
				}
			})
		}
		wg.Go(func() {
			for n := range 500 {
				next := cfg
				next.MaxAttempts = 2 + n%5
				require.NoError(t, r.Update(next))
				_ = r.Config()
				<-time.After(100 * time.Microsecond)
			}
		})
		wg.Wait()
		require.Equal(t, capacity-sent, pool.Balance(), "a token per retry that was sent, and no other")
		require.Greater(t, sent, 1000)
	})
}
