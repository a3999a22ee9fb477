package redisbulkhead

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// idle is a bulkhead whose engine is said to run, and does not: who asks is turned down by refuses, as by a store that is full.
func idle(t *testing.T, cfg bulkhead.Config) *Bulkhead {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	b, err := New(client, cfg, Options{})
	require.NoError(t, err)
	b.engine.running = true
	t.Cleanup(func() {
		b.mu.Lock()
		b.engine.running = false
		b.mu.Unlock()
		closed(t, b)
		require.NoError(t, client.Close())
	})
	return b
}

func refuses(b *Bulkhead) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := b.queue.front; c != nil; c = b.queue.next(c) {
		b.turnedDown(c, b.full)
	}
}

// waitsIn begins a wait that tells how it ended, and after what time.
func waitsIn(t *testing.T, ctx context.Context, b *Bulkhead) func() (time.Duration, error) {
	t.Helper()
	var err error
	var took time.Duration
	done := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(done)
		_, err = b.Acquire(ctx)
		took = time.Since(began)
	}()
	synctest.Wait()
	refuses(b)
	return func() (time.Duration, error) { <-done; return took, err }
}

// "waits for one at most MaxWait": to the nanosecond, though one timer serves all.
func TestEachWaitEndsAtItsOwnMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := bulkhead.Config{Name: "db", MaxConcurrent: 1, MaxWait: 10 * time.Second}
		b := idle(t, cfg)
		type wait struct {
			ends func() (time.Duration, error)
			want time.Duration
		}
		var all []wait
		for i := range 20 {
			all = append(all, wait{waitsIn(t, bg, b), cfg.MaxWait})
			if i == 10 {
				cfg.MaxWait = 3 * time.Second // who comes later ends earlier
				b.mu.Lock()
				b.cfg.Store(&cfg)
				b.mu.Unlock()
			}
			<-time.After(100 * time.Millisecond)
		}
		require.Equal(t, 20, b.Queued())
		for _, w := range all {
			took, err := w.ends()
			full, ok := errors.AsType[*bulkhead.FullError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, w.want, took)
			require.Equal(t, w.want, full.Waited)
		}
		require.Zero(t, b.Queued())
		require.Nil(t, b.ends.timer, "no timer outlives the waits")
		require.Empty(t, members(t, &b.ends.calls))
	})
}

// "Where ctx's deadline and the end of MaxWait are the same instant, it is ctx that ends the wait."
func TestACtxThatEndsWithMaxWaitOrBeforeEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := idle(t, bulkhead.Config{Name: "db", MaxConcurrent: 1, MaxWait: 10 * time.Second})
		other := waitsIn(t, bg, b)
		for _, left := range []time.Duration{10 * time.Second, 4 * time.Second} {
			ctx, cancel := context.WithTimeout(bg, left)
			defer cancel()
			ends := waitsIn(t, ctx, b)
			if left == 10*time.Second {
				continue
			}
			took, err := ends()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, left, took)
			require.Equal(t, 2, b.Queued())
		}
		_, err := other()
		require.ErrorIs(t, err, bulkhead.ErrFull)
		synctest.Wait()
		require.Zero(t, b.Queued())
	})
}

// A slot that comes in time is taken, and the timer that is left over finds nobody.
func TestASlotEndsTheCountingOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := idle(t, bulkhead.Config{Name: "db", MaxConcurrent: 1, MaxWait: 10 * time.Second})
		first, second := waitsIn(t, bg, b), waitsIn(t, bg, b)
		<-time.After(9 * time.Second)
		third := waitsIn(t, bg, b)
		b.mu.Lock()
		b.grant(b.queue.front, &slot{from: fromOpen})
		b.mu.Unlock()
		took, err := first()
		require.NoError(t, err)
		require.Equal(t, 9*time.Second, took)
		took, err = second()
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.Equal(t, 10*time.Second, took)
		took, err = third()
		require.ErrorIs(t, err, bulkhead.ErrFull)
		require.Equal(t, 10*time.Second, took)
		token, _ := latest(b)
		require.NoError(t, b.Settle(bg, token, leaf.Outcome{}))
	})
}

// The last whose MaxWait ends leaves the fleet's line, as one that leaves by itself does.
func TestTheEndOfTheLastWaitLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := idle(t, bulkhead.Config{Name: "db", MaxConcurrent: 1, MaxWait: time.Second})
		ends := waitsIn(t, bg, b)
		b.mu.Lock()
		b.engine.registered, b.engine.now = true, false
		b.mu.Unlock()
		_, err := ends()
		require.ErrorIs(t, err, bulkhead.ErrFull)
		b.mu.Lock()
		defer b.mu.Unlock()
		require.True(t, b.engine.now)
	})
}

// A wait is the call and its channel: no timer, no element of a list, no entry of a map.
func TestAllocsOfAHandOver(t *testing.T) {
	b := idle(t, bulkhead.Config{Name: "db", MaxConcurrent: 1, MaxWait: time.Hour})
	comes := func() *call {
		c := &call{wait: true, ends: int64(time.Hour), ready: make(chan struct{})}
		_, err := b.join(c)
		require.NoError(t, err)
		refuses(b)
		return c
	}
	last := comes() // keeps the timer
	c := comes()
	b.mu.Lock()
	b.grant(last, &slot{known: true, expires: endless, confirmed: time.Now()})
	b.mu.Unlock()
	holder := last
	allocs := testing.AllocsPerRun(handovers/2, func() {
		next := comes()
		b.giveBack(holder.token)
		holder, c = c, next
	})
	require.LessOrEqual(t, allocs, 2.0)
	require.NotZero(t, holder.token)
	b.leave(c)
	b.leave(holder)
}
