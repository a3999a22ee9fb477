package redislimit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// Waiters are FIFO, nobody overtakes them, not even for fewer tokens.
func TestWaitersAreServedInTurn(t *testing.T) {
	v, fake := newVirtual(), clockwork.NewFakeClock()
	l := on(t).frozen(v).limiter(ratelimit.Config{Rate: 1, Burst: 5, MaxWait: time.Hour, Clock: fake})
	require.NoError(t, l.AllowN(bg, 5))
	served := make(chan int)
	for i, n := range []int{5, 1, 3, 1} {
		go func() {
			if err := l.Wait(bg, n); err != nil {
				t.Error(err)
			}
			served <- i
		}()
		redistest.Eventually(t, "it stands in the line", func() bool { return queued(l) == i+1 })
	}
	require.Equal(t, 11*time.Second, waitOf(t, l.AllowN(bg, 1)), "those in front included")
	for i, due := range []float64{5, 6, 9, 10} { // one at a time: of two that are served by one call nobody knows who returns first
		v.at(due)
		redistest.Eventually(t, "the next is served", func() bool {
			fake.Advance(10 * time.Millisecond) // the first in the line asks again, at least once a second
			return queued(l) == 3-i
		})
		require.Equal(t, i, <-served)
	}
}

// A wait that does not fit MaxWait or ctx is refused now, costs nothing, and says how long.
func TestAWaitThatDoesNotFitIsRefusedNow(t *testing.T) {
	v := newVirtual()
	l := on(t).frozen(v).limiter(ratelimit.Config{Rate: 1, Burst: 5, MaxWait: 2 * time.Second})
	require.NoError(t, l.AllowN(bg, 5))
	require.Equal(t, 3*time.Second, waitOf(t, l.Wait(bg, 3)))
	ctx, cancel := context.WithTimeout(bg, 1900*time.Millisecond)
	defer cancel()
	require.Equal(t, 2*time.Second, waitOf(t, l.Wait(ctx, 2)))
	require.NoError(t, ctx.Err(), "now, not then")
	require.Equal(t, 0.0, tokens(t, l))

	fits, cancelFits := context.WithCancel(bg)
	answer := make(chan error, 1)
	go func() { answer <- l.Wait(fits, 2) }()
	redistest.Eventually(t, "a wait of exactly MaxWait fits", func() bool { return queued(l) == 1 })
	require.Equal(t, 3*time.Second, waitOf(t, l.AllowN(bg, 1)), "behind it")
	cancelFits()
	require.ErrorIs(t, <-answer, context.Canceled)
	require.Equal(t, time.Second, waitOf(t, l.AllowN(bg, 1)), "whoever is behind moves up")
}

// Test 13: ctx cancelled in the middle of an Acquire gives the token back, wherever the call stood: under way, answered, in
// the line.
func TestACancelledAcquireGivesItsTokenBack(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	options := server.Options()
	options.Addr = proxy.Addr
	p := of(t, server)
	p.client = redisClient(t, options)
	l := p.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 10})
	require.NoError(t, l.AllowN(bg, 1))
	cause := errors.New("the caller's own")
	proxy.OnReply(func(command []string) redistest.Action { return redistest.Action{Delay: 100 * time.Millisecond} })
	for range 5 {
		before := server.Calls(t, "evalsha")
		ctx, cancel := context.WithCancelCause(bg)
		answer := make(chan error, 1)
		go func() {
			_, err := l.Acquire(ctx)
			answer <- err
		}()
		redistest.Eventually(t, "executed", func() bool { return server.Calls(t, "evalsha") > before })
		cancel(cause)
		began := time.Now()
		err := <-answer
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		require.Less(t, time.Since(began), 50*time.Millisecond, "at once, not after the store's answer")
	}
	proxy.OnReply(nil)
	// Each is given back with the next call at the latest.
	require.NoError(t, l.AllowN(bg, 9), "none of them took a token along")
	require.InDelta(t, 0, tokens(t, l), 0.1)
}

// A refund of one process serves a waiter of the same one at once, and one of another within a second.
func TestARefundServesAWaiter(t *testing.T) {
	p := on(t)
	cfg := ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 1, MaxWait: 10 * time.Hour}
	a, b := p.limiter(cfg), p.limiter(cfg)
	permit, err := a.Acquire(bg)
	require.NoError(t, err)
	answer := make(chan error, 1)
	go func() { answer <- a.Wait(bg, 1) }()
	redistest.Eventually(t, "it waits", func() bool { return queued(a) == 1 })
	require.NoError(t, permit.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	require.NoError(t, <-answer)
	require.Equal(t, 0, queued(a))

	q := on(t)
	a, b = q.limiter(cfg), q.limiter(cfg)
	permit, err = a.Acquire(bg)
	require.NoError(t, err)
	go func() { answer <- b.Wait(bg, 1) }()
	redistest.Eventually(t, "it waits", func() bool { return queued(b) == 1 })
	require.NoError(t, permit.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	select {
	case err := <-answer:
		require.NoError(t, err)
	case <-time.After(redistest.Patience):
		t.Fatal("the other process never asked again")
	}
}

// Two processes that wait both get on: none starves.
func TestTwoProcessesThatWaitBothGetOn(t *testing.T) {
	p := on(t)
	cfg := ratelimit.Config{Rate: 200, Burst: 1, MaxWait: time.Minute}
	var admitted [2]int64
	var all sync.WaitGroup
	for i, goroutines := range []int{2, 60} {
		l := p.limiter(cfg)
		all.Go(func() { admitted[i], _ = hammer(l, order{Wait: true, Goroutines: goroutines, For: time.Second}) })
	}
	all.Wait()
	total := admitted[0] + admitted[1]
	require.Greater(t, total, int64(20), "of 200: a busy machine is slow, who waits for the next second gets one")
	require.Greater(t, admitted[0], total/10, "2 goroutines against 60: %v", admitted)
}

// Nobody's panic or Goexit keeps a token or a place: the callback's.
func TestPanicAndGoexitKeepNothing(t *testing.T) {
	l := on(t).limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 2, MaxWait: time.Hour})
	require.Panics(t, func() {
		_, _ = leaf.Do(bg, l, func(context.Context) (int, error) { panic("fn") })
	})
	require.InDelta(t, 1, tokens(t, l), 0.1, "it ran: its token is spent")
	require.NoError(t, l.AllowN(bg, 1))
	require.Equal(t, 0, queued(l))
}
