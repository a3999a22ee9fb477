package bulkhead

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

// C45
func TestConfigErrorsNameEveryFieldAndValue(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want []string
	}{
		{Config{}, []string{"MaxConcurrent is 0: want 1 or more"}},
		{Config{MaxConcurrent: -5}, []string{"MaxConcurrent is -5"}},
		{Config{MaxConcurrent: 1, MaxWait: -time.Second}, []string{"MaxWait is -1s"}},
		{Config{MaxConcurrent: 1, MaxWait: 1, MaxQueue: -1}, []string{"MaxQueue is -1"}},
		{Config{MaxConcurrent: 1, MaxQueue: 3}, []string{"MaxQueue is 3: want 0 without MaxWait"}},
		{Config{MaxConcurrent: 1, Clock: (*clockwork.FakeClock)(nil)}, []string{"Clock is a nil *clockwork.FakeClock"}},
		{Config{MaxWait: -1, MaxQueue: -1}, []string{"MaxConcurrent is 0", "MaxWait is -1ns", "MaxQueue is -1"}},
	} {
		b, err := New(c.cfg)
		require.Nil(t, b)
		ok := MustNew(Config{Name: "keep", MaxConcurrent: 1})
		update := ok.Update(c.cfg)
		for _, want := range c.want {
			require.ErrorContains(t, err, "bulkhead: "+want)
			require.ErrorContains(t, update, "bulkhead: "+want)
		}
		require.Equal(t, "keep", ok.Config().Name, "an invalid cfg changes nothing")
		require.Panics(t, func() { MustNew(c.cfg) })
	}
}

func TestLargestConfigOverflowsNothing(t *testing.T) {
	b := MustNew(Config{MaxConcurrent: math.MaxInt, MaxWait: math.MaxInt64, MaxQueue: math.MaxInt})
	require.Zero(t, b.InUse())
	settle := held(t, b)
	require.Equal(t, 1, b.InUse())
	require.NoError(t, b.Update(Config{MaxConcurrent: 1}))
	require.Equal(t, 1, b.InUse())
	_, err := b.TryAcquire(bg)
	require.ErrorIs(t, err, ErrFull)
	require.NoError(t, b.Update(Config{MaxConcurrent: math.MaxInt}))
	held(t, b)()
	settle()
	require.Zero(t, b.InUse())
}

func TestRefusal(t *testing.T) {
	b := MustNew(Config{Name: "db", MaxConcurrent: 1})
	hold(t, b, 1)
	_, err := b.Acquire(bg)
	require.EqualError(t, err, `bulkhead "db": full (1 at once)`)
	require.ErrorIs(t, err, ErrFull)
	full, _ := errors.AsType[*FullError](err)
	require.Equal(t, FullError{Name: "db", Max: 1}, *full)
	require.True(t, full.Rejected())
	require.True(t, full.UpperBound())
	_, ok := full.RetryAfter()
	require.False(t, ok, "a local bulkhead does not know when")
	wait, ok := (&FullError{Wait: time.Minute}).RetryAfter()
	require.True(t, ok)
	require.Equal(t, time.Minute, wait)
	_, ok = (&FullError{Wait: -1}).RetryAfter()
	require.False(t, ok)
}

func TestEveryOutcomeFreesTheSlotOnce(t *testing.T) {
	b := MustNew(Config{MaxConcurrent: 1})
	for v := leaf.Returned; v <= leaf.Ignored; v++ {
		p, err := b.Acquire(bg)
		require.NoError(t, err, v)
		require.NoError(t, p.Settle(bg, leaf.Outcome{Verdict: v}))
		require.NoError(t, p.Settle(bg, leaf.Outcome{Verdict: v}))
		require.Zero(t, b.InUse(), v)
	}
	require.PanicsWithValue(t, "oops", func() {
		_, _ = leaf.Do(bg, b, func(context.Context) (int, error) { panic("oops") })
	})
	require.Zero(t, b.InUse())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = leaf.Do(bg, b, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	}()
	<-done
	require.Zero(t, b.InUse())
}

func TestUpdateHandsNewSlotsToTheWaitersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Minute})
		settle := held(t, b)
		first, second, third := call(t.Context(), b), call(t.Context(), b), call(t.Context(), b)
		require.NoError(t, b.Update(Config{MaxConcurrent: 3})) // and no MaxWait, for those who come
		require.False(t, first.waits())
		require.False(t, second.waits())
		require.True(t, third.waits(), "keeps its place and the MaxWait that it came with")
		require.Equal(t, 3, b.InUse())
		late := call(t.Context(), b)
		require.False(t, late.waits())
		require.ErrorIs(t, late.err, ErrFull)
		<-third.done
		require.Equal(t, time.Minute, third.at)
		settle()
		first.settle()
		second.settle()
		require.Zero(t, b.InUse())
	})
}

func TestUpdateToFewerTakesEffectAsSlotsComeBack(t *testing.T) {
	b := MustNew(Config{MaxConcurrent: 3})
	settle := hold(t, b, 3)
	require.NoError(t, b.Update(Config{Name: "small", MaxConcurrent: 1}))
	require.Equal(t, 3, b.InUse(), "who is inside stays inside")
	for _, s := range settle {
		_, err := b.Acquire(bg)
		require.ErrorIs(t, err, ErrFull)
		full, _ := errors.AsType[*FullError](err)
		require.Equal(t, 1, full.Max)
		s()
	}
	hold(t, b, 1)
}

func TestClockMayNotChange(t *testing.T) {
	c := clockwork.NewFakeClock()
	b := MustNew(Config{MaxConcurrent: 1, MaxWait: 1, Clock: c})
	require.EqualError(t, b.Update(Config{Name: "db", MaxConcurrent: 2}),
		`bulkhead "db": Clock is real time: want the one that it was made with, a *clockwork.FakeClock: it may not change`)
	require.ErrorContains(t, b.Update(Config{MaxConcurrent: 2, Clock: clockwork.NewFakeClock()}),
		"bulkhead: Clock is another *clockwork.FakeClock: want the one that it was made with")
	require.Equal(t, Config{MaxConcurrent: 1, MaxWait: 1, Clock: c}, b.Config())
	require.NoError(t, b.Update(Config{MaxConcurrent: 2, Clock: c}))
	got, used := b.Clock()
	require.Same(t, c, got)
	require.False(t, used, "without a MaxWait")
	got, used = MustNew(Config{MaxConcurrent: 1, MaxWait: 1}).Clock()
	require.Nil(t, got)
	require.True(t, used)
}

func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{Name: "db", MaxConcurrent: 2, MaxWait: time.Second, MaxQueue: 7})
		hold(t, b, 2)
		c := call(t.Context(), b)
		require.Equal(t, leaf.Snapshot{Kind: "bulkhead", Name: "db", Gauges: []leaf.Gauge{
			{Name: "in_use", Value: 2, Limit: 2},
			{Name: "queued", Value: 1, Limit: 7},
		}}, b.Inspect())
		<-c.done
	})
}

// A clock that jumps by decades either way holds nobody and lets nobody in.
func TestBulkheadCrossesIntoABubbleAndBack(t *testing.T) {
	b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Second})
	settle := held(t, b)
	synctest.Test(t, func(t *testing.T) {
		c := call(t.Context(), b)
		<-c.done
		require.Equal(t, time.Second, c.at)
		require.ErrorIs(t, c.err, ErrFull)
		full, _ := errors.AsType[*FullError](c.err)
		require.Equal(t, time.Second, full.Waited)
	})
	settle()
	held(t, b)()
}

// Never above the limit, nobody lost: real goroutines that wait, give up, are refused, and a limit that changes.
func TestConcurrentCallsNeverExceedTheLimit(t *testing.T) {
	const most = 4
	b := MustNew(Config{MaxConcurrent: most, MaxWait: time.Hour})
	var inside, worst, ran atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 500 {
				ctx, cancel := context.WithCancel(bg)
				if (g+i)%3 == 0 {
					go cancel() // leaves, at any moment
				}
				acquire := b.Acquire
				if (g+i)%4 == 0 {
					acquire = b.TryAcquire
				}
				if p, err := acquire(ctx); err == nil {
					ran.Add(1)
					n := inside.Add(1)
					for w := worst.Load(); n > w && !worst.CompareAndSwap(w, n); w = worst.Load() {
					}
					runtime.Gosched()
					inside.Add(-1)
					_ = p.Settle(ctx, leaf.Outcome{})
				}
				cancel()
			}
		})
	}
	wg.Go(func() {
		for i := range 200 {
			require.NoError(t, b.Update(Config{MaxConcurrent: 1 + i%most, MaxWait: time.Hour}))
			runtime.Gosched()
		}
	})
	wg.Wait()
	require.LessOrEqual(t, worst.Load(), int64(most))
	require.Positive(t, ran.Load())
	require.Zero(t, b.InUse())
	require.Zero(t, b.Queued())
	require.NoError(t, b.Update(Config{MaxConcurrent: most}))
	hold(t, b, most)
}
