package breaker

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func TestAPanicInTheCallbackIsAFailureAndGoesOn(t *testing.T) {
	r := newRig(t, hair())
	require.PanicsWithValue(t, "fn", func() {
		_, _ = leaf.Do(bg, r, func(context.Context) (int, error) { panic("fn") })
	})
	r.is(Open)
	require.NoError(t, r.refused().Cause)
}

func TestGoexitInTheCallbackIsAFailure(t *testing.T) {
	r := halfOpen(t, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = leaf.Do(bg, r, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	}()
	<-done
	r.is(Open)
	require.Equal(t, "probe failed", r.Snapshot().Reason)
}

func TestTheCallersDeadlineIsBlamedAfterHalfOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{MinCalls: 5})
		hang := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
		for range 5 { // a hung downstream behind short deadlines
			ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
			_, err := leaf.Do(ctx, b, hang)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, Open, b.State())

		_ = b.Reset(bg)
		for range 20 { // impatient callers
			ctx, cancel := context.WithCancel(bg)
			time.AfterFunc(10*time.Millisecond, cancel)
			_, err := leaf.Do(ctx, b, hang)
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Equal(t, Snapshot{State: Closed, Reason: "reset"}, ageless(b.Snapshot()))
	})
}

func TestSlowCallsAreMeasuredByDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{SlowCall: time.Second, MinCalls: 2})
		for range 2 {
			_, err := leaf.Do(bg, b, func(context.Context) (int, error) { <-time.After(time.Second); return 1, nil })
			require.NoError(t, err)
		}
		require.Equal(t, Open, b.State())
		require.Equal(t, "slow rate 2/2", b.Snapshot().Reason)
		<-time.After(5 * time.Second)
		require.Equal(t, HalfOpen, b.State())
	})
}

// The program's own Rand runs inside a transition; what it breaks must not be the breaker.
func TestAPanickingRandLeavesTheBreakerWhole(t *testing.T) {
	broken := true
	cfg := hair()
	cfg.OpenJitter, cfg.Rand = true, func() float64 {
		if broken {
			panic("rand")
		}
		return 0
	}
	r := newRig(t, cfg)
	end := r.begin()
	require.PanicsWithValue(t, "rand", func() { end(failure) })
	r.is(Closed)
	r.counts(1, 1)
	broken = false
	r.run(1, failure)
	r.is(Open)
	require.Equal(t, 5*time.Second, r.refused().Wait)

	broken = true
	r.to(5)
	end = r.begin()
	require.PanicsWithValue(t, "rand", func() { end(failure) })
	r.is(HalfOpen)
	require.Empty(t, r.told[2:])
	require.Zero(t, r.Snapshot().Probes, "nobody holds the permit any more")
}

func TestJitterIsDrawnFromHalfOfTheOpenTime(t *testing.T) {
	cfg := hair()
	cfg.OpenJitter, cfg.Rand = true, func() float64 { return 0.5 }
	r := newRig(t, cfg)
	r.run(1, failure)
	require.Equal(t, 7500*time.Millisecond, r.refused().Wait)
	r.to(7.5)
	_ = r.begin()
	require.Equal(t, 10*time.Second, r.refused().Wait, "the lease is the open time before jitter")
}
