package bulkhead

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// C10: the slot follows the work's real end. Its caller gives up (by deadline, or by going away) at 100 ms, the work ignores that
// until 250 ms: the slot is taken until then, and free, and handed on, from then on.
func TestSlotIsHeldByWorkThatOutlivesItsCallersPatience(t *testing.T) {
	const ms = time.Millisecond
	for name, patience := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 100*ms)
		},
		"went away": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(100*ms, cancel)
			return ctx, cancel
		},
	} {
		for _, queued := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := Config{MaxConcurrent: 1}
					if queued {
						cfg.MaxWait = time.Second
					}
					b := MustNew(cfg)
					ctx, cancel := patience(t.Context())
					defer cancel()
					began := time.Now()
					at := func(d time.Duration) { <-time.After(time.Until(began.Add(d))) }
					ended := make(chan error, 1)
					go func() {
						_, err := leaf.Do(ctx, b, func(context.Context) (int, error) {
							at(250 * ms)
							assert.Equal(t, 1, b.InUse(), "to the end")
							return 0, ctx.Err()
						})
						ended <- err
					}()
					for _, when := range []time.Duration{0, 99, 101, 150, 249} {
						at(when * ms)
						synctest.Wait()
						require.Equal(t, 1, b.InUse(), when)
						require.Equal(t, when > 100, ctx.Err() != nil, when)
						_, err := b.TryAcquire(t.Context())
						require.ErrorIs(t, err, ErrFull, when)
					}
					next, err := b.Acquire(t.Context())
					if queued {
						require.NoError(t, err)
						require.Equal(t, 250*ms, time.Since(began), "handed on when the work ends")
						require.NoError(t, next.Settle(t.Context(), leaf.Outcome{}))
					} else {
						require.ErrorIs(t, err, ErrFull)
					}
					require.Equal(t, ctx.Err(), <-ended)
					require.Equal(t, 250*ms, time.Since(began))
					require.Zero(t, b.InUse())
				})
			})
		}
	}
}
