package bulkhead

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// caller is one call of Acquire that may wait.
type caller struct {
	permit leaf.Permit
	err    error
	at     time.Duration // when it came back, since the bubble began
	done   chan struct{}
}

var bubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// call acquires in a goroutine of its own, which has come to rest when call returns.
func call(ctx context.Context, b *Bulkhead) *caller {
	c := &caller{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.permit, c.err = b.Acquire(ctx)
		c.at = time.Since(bubble)
	}()
	synctest.Wait()
	return c
}

func (c *caller) waits() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

func (c *caller) settle() { _ = c.permit.Settle(bg, leaf.Outcome{}) }

func TestWaitersAreServedFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour})
		settle := held(t, b)
		callers := []*caller{call(t.Context(), b), call(t.Context(), b), call(t.Context(), b)}
		require.Equal(t, 3, b.Queued())
		settle()
		for i, c := range callers {
			require.False(t, c.waits(), i)
			require.NoError(t, c.err)
			for _, later := range callers[i+1:] {
				require.True(t, later.waits(), i)
			}
			require.Equal(t, 1, b.InUse())
			c.settle()
		}
		require.Zero(t, b.InUse())
		require.Zero(t, b.Queued())
	})
}

func TestNewCallOvertakesNobodyWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour})
		settle := held(t, b)
		first := call(t.Context(), b)
		// A slot that is on its way back, and not yet handed over, looks free; it belongs to the first in the queue.
		b.queue.mu.Lock()
		go settle()
		for word(b.queue.word.Load()).free() == 0 {
			runtime.Gosched()
		}
		_, err := b.TryAcquire(bg)
		require.ErrorIs(t, err, ErrFull)
		require.False(t, b.queue.take())
		b.queue.mu.Unlock()
		require.False(t, first.waits())
		require.NoError(t, first.err)
		second := call(t.Context(), b)
		require.True(t, second.waits())
		first.settle()
		require.False(t, second.waits())
		second.settle()
	})
}

func TestWaitEndsAfterMaxWaitAndSaysHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{Name: "db", MaxConcurrent: 2, MaxWait: 3 * time.Second})
		hold(t, b, 2)
		c := call(t.Context(), b)
		require.True(t, c.waits())
		<-c.done
		require.Equal(t, 3*time.Second, c.at)
		full, ok := errors.AsType[*FullError](c.err)
		require.True(t, ok)
		require.Equal(t, FullError{Name: "db", Max: 2, Waited: 3 * time.Second}, *full)
		require.EqualError(t, c.err, `bulkhead "db": full (2 at once), waited 3s`)
		require.Zero(t, b.Queued(), "its queue place is free")
		require.Equal(t, 2, b.InUse())
	})
}

func TestQueueHasMaxQueuePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour, MaxQueue: 2})
		settle := held(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := call(ctx, b), call(t.Context(), b)
		third := call(t.Context(), b)
		require.False(t, third.waits(), "refused at once")
		require.ErrorIs(t, third.err, ErrFull)
		require.Zero(t, third.at)
		cancel()
		require.False(t, first.waits())
		fourth := call(t.Context(), b)
		require.True(t, fourth.waits(), "the place of the one who left is free")
		settle()
		require.False(t, second.waits())
		second.settle()
		require.False(t, fourth.waits())
		fourth.settle()
	})
}

func TestContextThatEndsTheWaitIsTheError(t *testing.T) {
	errX := errors.New("x")
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour})
		hold(t, b, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		c := call(ctx, b)
		cancel(errX)
		require.False(t, c.waits())
		require.ErrorIs(t, c.err, context.Canceled)
		require.ErrorIs(t, c.err, errX)
		require.NotErrorIs(t, c.err, ErrFull)
		require.Zero(t, b.Queued())
	})
}

// Whose end it is must not hang on which of two timers is served first: a hundred times the same.
func TestDeadlineInTheSameInstantAsMaxWaitIsTheContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Second})
		hold(t, b, 1)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := b.Acquire(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, ErrFull)
			})
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second+1)
				defer cancel()
				_, err := b.Acquire(ctx)
				require.ErrorIs(t, err, ErrFull)
			})
		}
		wg.Wait()
	})
}

func TestGrantThatRacesWithLeavingIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour})
		settle := held(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := call(ctx, b), call(t.Context(), b)
		cancel() // both before the first runs again: it finds its slot granted and its ctx done
		settle()
		require.False(t, first.waits())
		require.ErrorIs(t, first.err, context.Canceled)
		require.False(t, second.waits())
		require.NoError(t, second.err)
		require.Equal(t, 1, b.InUse())
		second.settle()
		require.Zero(t, b.InUse())
	})
}

// C21
func TestDoneContextNeverTakesASlot(t *testing.T) {
	errX := errors.New("x")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(errX)
	b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour})
	for _, acquire := range []func(context.Context) (leaf.Permit, error){b.Acquire, b.TryAcquire} {
		_, err := acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errX)
	}
	require.Zero(t, b.InUse())
	held(t, b)()
}

// badCtx panics where a waiter asks it something.
type badCtx struct {
	context.Context
	done func() <-chan struct{}
}

func (c badCtx) Done() <-chan struct{} { return c.done() }

func TestPanicWhileWaitingLosesNeitherPlaceNorSlot(t *testing.T) {
	b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour, MaxQueue: 1, Clock: clockwork.NewFakeClock()})
	settle := held(t, b)
	require.PanicsWithValue(t, "ctx", func() {
		_, _ = b.Acquire(badCtx{bg, func() <-chan struct{} { panic("ctx") }})
	})
	require.Zero(t, b.Queued())
	require.PanicsWithValue(t, "ctx", func() { // granted in the instant in which it panics
		_, _ = b.Acquire(badCtx{bg, func() <-chan struct{} { settle(); panic("ctx") }})
	})
	require.Zero(t, b.Queued())
	require.Zero(t, b.InUse())
	held(t, b)()
}

// C04's kind: whoever ends a wait, the timer is stopped.
func TestNoTimerIsLeftBehind(t *testing.T) {
	c := clockwork.NewFakeClock()
	b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour, Clock: c})
	hold(t, b, 1)
	for range 100 {
		ctx, cancel := context.WithCancel(bg)
		done := make(chan error)
		go func() {
			_, err := b.Acquire(ctx)
			done <- err
		}()
		require.NoError(t, c.BlockUntilContext(bg, 1))
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		short, stop := context.WithCancel(bg)
		stop()
		require.Error(t, c.BlockUntilContext(short, 1), "no timer is armed")
	}
}

// hasty has a deadline and no Done, which nobody would be woken by.
type hasty struct {
	context.Context
	in time.Duration
}

func (c hasty) Deadline() (time.Time, bool) { return time.Now().Add(c.in), true }

func TestDeadlineWithoutDoneWaitsNoLongerThanMaxWait(t *testing.T) {
	for _, in := range []time.Duration{-time.Hour, time.Millisecond, time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Second})
			settle := held(t, b)
			began := time.Now()
			_, err := b.Acquire(hasty{bg, in})
			require.ErrorIs(t, err, ErrFull)
			require.Equal(t, time.Second, time.Since(began))
			settle()
		})
	}
}

// claims tells a deadline that its Done knows nothing of.
type claims struct {
	context.Context
	in time.Duration
}

func (c claims) Deadline() (time.Time, bool) { return time.Now().Add(c.in), true }

// MaxWait is how long a call may wait for a slot, whatever its context claims. Who claims to end in the very instant gets the moment
// in which it would have.
func TestMaxWaitIsKeptUnderAContextThatDoesNotKeepItsDeadline(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Second, time.Millisecond: time.Second, time.Second - moment: time.Second, time.Second: time.Second + moment,
		time.Second + 1: time.Second, time.Hour: time.Second, math.MaxInt64: time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Second})
			settle := held(t, b)
			began := time.Now()
			_, err := b.Acquire(claims{ctx, in})
			require.ErrorIs(t, err, ErrFull)
			require.Equal(t, want, time.Since(began), "it claims %v", in)
			require.Zero(t, b.Queued())
			settle()
		})
	}
}
