package ratelimit

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// caller is one call of Wait.
type caller struct {
	err  error
	at   time.Duration // when it came back, since the bubble began
	done chan struct{}
}

var bubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// call waits in a goroutine of its own, which has come to rest when call returns.
func call(ctx context.Context, l *Limiter, n int) *caller {
	c := &caller{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = l.Wait(ctx, n)
		c.at = time.Since(bubble)
	}()
	synctest.Wait()
	return c
}

func (c *caller) admitted(t *testing.T, at time.Duration) {
	t.Helper()
	<-c.done
	require.NoError(t, c.err)
	require.Equal(t, at, c.at)
}

func (c *caller) refusedNow(t *testing.T, wait time.Duration) {
	t.Helper()
	select {
	case <-c.done:
	default:
		t.Fatal("it waits")
	}
	require.Equal(t, wait, waitOf(t, c.err))
}

func drained(cfg Config) *Limiter {
	l := MustNew(cfg)
	if err := l.AllowN(l.Config().Burst); err != nil {
		panic(err)
	}
	return l
}

func TestWaitersAreServedFirstInFirstOutWhateverTheyWant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := drained(Config{Rate: 1, Burst: 5, MaxWait: time.Hour})
		big, small, last := call(t.Context(), l, 5), call(t.Context(), l, 1), call(t.Context(), l, 2)
		require.Equal(t, 3, queuedIn(l))
		<-time.After(4500 * time.Millisecond)
		require.Equal(t, 4.5, l.Tokens())
		require.False(t, l.Allow(), "four tokens are there, and all belong to who waits")
		require.Equal(t, 4500*time.Millisecond, waitOf(t, l.AllowN(1)), "those in front included")
		_, err := l.TryAcquire(t.Context())
		require.ErrorIs(t, err, ErrLimited)
		big.admitted(t, 5*time.Second)
		small.admitted(t, 6*time.Second)
		last.admitted(t, 8*time.Second)
		require.Zero(t, l.Tokens())
		require.Zero(t, queuedIn(l))
	})
}

func TestWaitThatDoesNotFitIsRefusedNowAndCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := drained(Config{Rate: 1, Burst: 5, MaxWait: 3 * time.Second})
		call(t.Context(), l, 4).refusedNow(t, 4*time.Second)
		fits := call(t.Context(), l, 3) // exactly MaxWait
		call(t.Context(), l, 1).refusedNow(t, 4*time.Second)
		fits.admitted(t, 3*time.Second)
		require.Zero(t, l.Tokens())

		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		call(ctx, l, 2).refusedNow(t, 2*time.Second) // exactly ctx's deadline: a done ctx takes nothing
		require.Equal(t, 0, queuedIn(l))
		call(ctx, l, 1).admitted(t, 4*time.Second)
	})
}

func TestWithoutMaxWaitNobodyWaits(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Burst: 1})
	f.drain()
	require.Equal(t, time.Second, waitOf(t, f.Wait(bg, 1)))
	_, err := f.Acquire(bg)
	require.Equal(t, time.Second, waitOf(t, err))
}

func TestWaiterThatLeavesGivesItsTokensBackAndWakesTheNext(t *testing.T) {
	errX := errors.New("x")
	synctest.Test(t, func(t *testing.T) {
		l := drained(Config{Rate: 1, Burst: 5, MaxWait: time.Hour})
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second, third := call(ctx, l, 4), call(t.Context(), l, 2), call(t.Context(), l, 1)
		<-time.After(2500 * time.Millisecond)
		cancel(errX)
		<-first.done
		require.ErrorIs(t, first.err, context.Canceled)
		require.ErrorIs(t, first.err, errX)
		require.NotErrorIs(t, first.err, ErrLimited)
		second.admitted(t, 2500*time.Millisecond) // woken at once: its tokens are there
		third.admitted(t, 3*time.Second)          // and this one earlier by four seconds
		require.Zero(t, l.Tokens())
	})
}

func TestWaiterInTheMiddleThatLeavesLetsThoseBehindMoveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := drained(Config{Rate: 1, Burst: 5, MaxWait: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		first, middle, last := call(t.Context(), l, 2), call(ctx, l, 5), call(t.Context(), l, 1)
		cancel()
		<-middle.done
		first.admitted(t, 2*time.Second)
		last.admitted(t, 3*time.Second)
	})
}

func TestGrantThatRacesWithLeavingIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := drained(Config{Rate: 1, Burst: 2, MaxWait: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		first, second := call(ctx, l, 1), call(t.Context(), l, 1)
		l.queue.mu.Lock()
		w := l.first()
		l.queue.mu.Unlock()
		// The waiter learns of both, its token and the end of its ctx, before it runs again.
		l.locked(func(b *bucket, now instant) {
			cancel()
			for w.state == queued {
				l.giveBack(b, now, 1)
			}
		})
		<-first.done
		require.ErrorIs(t, first.err, context.Canceled)
		second.admitted(t, 0)
		require.Zero(t, l.Tokens())
	})
}

func TestRefundWakesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MustNew(Config{Rate: 1, Burst: 2, MaxWait: time.Hour})
		p, err := l.Acquire(t.Context())
		require.NoError(t, err)
		require.True(t, l.Allow())
		first, second := call(t.Context(), l, 1), call(t.Context(), l, 2)
		<-time.After(250 * time.Millisecond)
		require.NoError(t, p.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
		first.admitted(t, 250*time.Millisecond)
		second.admitted(t, 2*time.Second)
	})
}

// A refund above Burst is lost, also where a waiter takes what is there in the same instant.
func TestRefundWithWaitersNeverExceedsBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MustNew(Config{Rate: 1, Burst: 1, MaxWait: time.Hour})
		p, err := l.Acquire(t.Context())
		require.NoError(t, err)
		<-time.After(700 * time.Millisecond)
		first, second := call(t.Context(), l, 1), call(t.Context(), l, 1)
		require.NoError(t, p.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun})) // 0.7 + 1 is 1
		first.admitted(t, 700*time.Millisecond)
		second.admitted(t, 1700*time.Millisecond)
	})
}

func TestUpdateKeepsTheOrderOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := drained(Config{Rate: 1, Per: time.Minute, Burst: 5, MaxWait: time.Hour})
		first, second, third := call(t.Context(), l, 5), call(t.Context(), l, 1), call(t.Context(), l, 2)
		<-time.After(time.Minute)
		require.NoError(t, l.Update(Config{Rate: 1, Burst: 5}))
		first.admitted(t, time.Minute+4*time.Second)
		second.admitted(t, time.Minute+5*time.Second)
		third.admitted(t, time.Minute+7*time.Second)
	})
}

func TestUpdateRefusesNowWhomTheNewRateServesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := drained(Config{Name: "api", Rate: 1, Burst: 5, MaxWait: 10 * time.Second})
		big, late := call(t.Context(), l, 5), call(t.Context(), l, 2)
		small, after := call(t.Context(), l, 1), call(t.Context(), l, 1)
		require.NoError(t, l.Update(Config{Name: "api", Rate: 1, Per: 6 * time.Second, Burst: 4}))
		synctest.Wait()
		<-big.done
		require.ErrorContains(t, big.err, "n is 5: want 0 to 4")
		late.refusedNow(t, 12*time.Second)
		after.refusedNow(t, 12*time.Second)
		small.admitted(t, 6*time.Second)
	})
}

func TestPanicWhileWaitingLosesNeitherPlaceNorTokens(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Burst: 1, MaxWait: time.Hour})
	f.drain()
	require.PanicsWithValue(t, "ctx", func() { _ = f.Wait(badCtx{bg, func() { panic("ctx") }}, 1) })
	require.Zero(t, queuedIn(f.Limiter))
	require.PanicsWithValue(t, "ctx", func() { // given its token in the instant in which it panics
		_ = f.Wait(badCtx{bg, func() { f.clock.Advance(time.Second); panic("ctx") }}, 1)
	})
	require.Zero(t, queuedIn(f.Limiter))
	require.Equal(t, 1.0, f.Tokens())
}

// badCtx does something when a waiter asks for its end.
type badCtx struct {
	context.Context
	done func()
}

func (c badCtx) Done() <-chan struct{} { c.done(); return nil }

// C04's kind: whoever ends a wait, no timer stays armed.
func TestNoTimerIsLeftBehind(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Burst: 1, MaxWait: time.Hour})
	f.drain()
	ended, stop := context.WithCancel(bg)
	stop()
	for range 100 {
		ctx, cancel := context.WithCancel(bg)
		done := make(chan error)
		go func() { done <- f.Wait(ctx, 1) }()
		require.NoError(t, f.clock.BlockUntilContext(bg, 1))
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Error(t, f.clock.BlockUntilContext(ended, 1), "no timer is armed")
	}
	require.Zero(t, f.Tokens())
}

func TestLongestMaxWaitOverflowsNothing(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Per: 100 * 365 * 24 * time.Hour, Burst: 100_000, MaxWait: math.MaxInt64})
	f.drain()
	require.Equal(t, time.Duration(math.MaxInt64), waitOf(t, f.AllowN(100_000)), "saturates")
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error)
	go func() { done <- f.Wait(ctx, 100_000) }()
	require.NoError(t, f.clock.BlockUntilContext(bg, 1))
	require.False(t, f.Allow())
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// Exactly as many as there are tokens, in real concurrency: takers, waiters that come and go, refunds and updates.
func TestConcurrentCallsTakeExactlyWhatIsThere(t *testing.T) {
	const n = 3000
	c := clockwork.NewFakeClock()
	cfg := Config{Rate: 1, Per: time.Hour, Burst: n, MaxWait: 100 * time.Hour, Clock: c}
	l := MustNew(cfg)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				switch (g + i) % 4 {
				case 0:
					if l.AllowN(2) == nil {
						taken.Add(2)
					}
				case 1:
					if p, err := l.TryAcquire(bg); err == nil {
						_ = p.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun})
					}
				case 2:
					if l.Allow() {
						taken.Add(1)
					}
				default:
					ctx, cancel := context.WithCancel(bg)
					go cancel()
					if l.Wait(ctx, 1) == nil {
						taken.Add(1)
					}
					cancel()
				}
			}
		})
	}
	wg.Go(func() {
		for range 300 {
			if err := l.Update(cfg); err != nil {
				panic(err)
			}
			runtime.Gosched()
		}
	})
	wg.Wait()
	require.Equal(t, float64(n), float64(taken.Load())+l.Tokens())
	require.Zero(t, queuedIn(l))
	require.Equal(t, l.Tokens() >= 1, l.Allow())
}
