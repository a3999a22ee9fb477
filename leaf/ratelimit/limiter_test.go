package ratelimit

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func TestBucketStartsFullAndRefillsEvenly(t *testing.T) {
	f := newFixture(t, Config{Rate: 10, Burst: 5})
	f.replay(
		row{0, 5, true, 0}, row{0, 1, false, 0}, row{0.05, 1, false, 0.5}, row{0.1, 1, true, 0},
		row{0.3, 2, true, 0}, row{0.6, 4, false, 3}, row{0.6, 3, true, 0}, row{100, 5, true, 0},
	)
}

func TestRefusalSaysHowLong(t *testing.T) {
	f := newFixture(t, Config{Name: "api", Rate: 4, Burst: 4})
	f.drain()
	err := f.AllowN(3)
	require.EqualError(t, err, `ratelimit "api": limited, enough tokens in 750ms`)
	require.ErrorIs(t, err, ErrLimited)
	limited, _ := errors.AsType[*LimitedError](err)
	require.True(t, limited.Rejected())
	wait, ok := limited.RetryAfter()
	require.True(t, ok)
	require.Equal(t, 750*time.Millisecond, wait)
	require.EqualError(t, MustNewQuota("q", 1).drained(), `ratelimit "q": not enough tokens left, never refilled`)
}

// drained is the refusal of a quota of one.
func (l *Limiter) drained() error {
	_ = l.Allow()
	return l.AllowN(1)
}

func TestOnlyNotRunRefunds(t *testing.T) {
	for v := leaf.Returned; v <= leaf.Ignored; v++ {
		for _, l := range []*Limiter{newFixture(t, Config{Rate: 1, Burst: 3}).Limiter, MustNewQuota("", 3)} {
			require.NoError(t, l.AllowN(2))
			p, err := l.Acquire(bg)
			require.NoError(t, err)
			require.NoError(t, p.Settle(bg, leaf.Outcome{Verdict: v}))
			require.NoError(t, p.Settle(bg, leaf.Outcome{Verdict: v}))
			want := 0.0
			if v == leaf.NotRun {
				want = 1
			}
			require.Equal(t, want, l.Tokens(), v)
		}
	}
}

func TestPanicAndGoexitRefundNothing(t *testing.T) {
	l := newFixture(t, Config{Rate: 1, Burst: 2}).Limiter
	require.Panics(t, func() { _, _ = leaf.Do(bg, l, func(context.Context) (int, error) { panic("oops") }) })
	require.Equal(t, 1.0, l.Tokens())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = leaf.Do(bg, l, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	}()
	<-done
	require.Zero(t, l.Tokens())
}

func TestRefundNeverExceedsBurst(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Burst: 2})
	p, err := f.TryAcquire(bg)
	require.NoError(t, err)
	f.at(10) // full again meanwhile
	require.NoError(t, p.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	f.replay(row{10, 2, true, 0}, row{10, 1, false, 0}, row{11, 1, true, 0})
	q := MustNewQuota("q", 2)
	p, err = q.Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, q.Update(Config{Burst: 1}))
	require.NoError(t, p.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	require.Equal(t, 1.0, q.Tokens())
}

func TestUpdateKeepsTheBalanceOfThatInstant(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		left float64 // of 2.5 in a bucket of 5 at 1 per 10 s
		then float64 // 10 s later
	}{
		{"faster", Config{Rate: 1, Burst: 5}, 2.5, 5},
		{"larger", Config{Rate: 1, Per: 10 * time.Second, Burst: 50}, 2.5, 3.5},
		{"smaller", Config{Rate: 1, Per: 10 * time.Second, Burst: 2}, 2, 2},
		{"slower, larger", Config{Rate: 1, Per: 20 * time.Second, Burst: 9}, 2.5, 3},
		{"with a rate that divides badly", Config{Rate: 3, Per: 7 * time.Second, Burst: 3}, 2.5, 3},
	} {
		f := newFixture(t, Config{Rate: 1, Per: 10 * time.Second, Burst: 5})
		f.drain()
		f.at(25)
		c.cfg.Clock = f.clock
		require.NoError(t, f.Update(c.cfg))
		require.InDelta(t, c.left, f.Tokens(), 1e-9, c.name)
		require.LessOrEqual(t, f.Tokens(), c.left, c.name)
		require.InDelta(t, c.then, f.at(35).Tokens(), 1e-9, c.name)
	}
}

func TestUpdatesDoNotMintOrLoseWholeTokens(t *testing.T) {
	f := newFixture(t, Config{Rate: 3, Burst: 7})
	require.NoError(t, f.AllowN(4))
	for i := 1; i < 500; i++ {
		require.NoError(t, f.Update(Config{Rate: i, Per: time.Duration(i) * 7919 * time.Microsecond, Burst: 7, Clock: f.clock}))
		require.Equal(t, 3.0, f.Tokens())
	}
}

func TestQuotaUpdateKeepsWhatWasSpent(t *testing.T) {
	q := MustNewQuota("trial", 10)
	require.NoError(t, q.AllowN(4))
	for _, c := range []struct {
		n    int
		left float64
	}{{20, 16}, {5, 1}, {3, 0}, {4, 0}, {5, 1}, {10, 6}} {
		require.NoError(t, q.Update(Config{Name: "trial", Burst: c.n}))
		require.Equal(t, c.left, q.Tokens(), c.n)
		require.Equal(t, c.n, q.Config().Burst)
	}
	require.ErrorContains(t, q.AllowN(11), "n is 11: want 0 to 10")
	require.NoError(t, q.AllowN(6))
	require.Less(t, waitOf(t, q.AllowN(1)), time.Duration(0))
}

func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MustNew(Config{Name: "api", Rate: 2, Burst: 4, MaxWait: time.Hour})
		require.NoError(t, l.AllowN(3))
		done := make(chan error)
		go func() { done <- l.Wait(t.Context(), 4) }()
		synctest.Wait()
		require.Equal(t, leaf.Snapshot{Kind: "ratelimit", Name: "api", Gauges: []leaf.Gauge{
			{Name: "tokens", Value: 1, Limit: 4}, {Name: "queued", Value: 1},
		}}, l.Inspect())
		require.NoError(t, <-done)
		require.Equal(t, 0.0, l.Tokens())
	})
}

// A clock that jumps by decades is another clock: the bucket starts full. Less than a year back is a step: nothing is minted.
func TestJumpBackByDecadesStartsFullAndAStepMintsNothing(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, cfg := range []Config{
		{Rate: 10, Burst: 10}, {Rate: 997, Burst: 997}, {Rate: 1, Per: 100 * year, Burst: 3}, {Rate: 99_991, Per: 24 * time.Hour},
	} {
		for _, ahead := range []time.Duration{0, time.Second, 25 * year} { // drained when made, and long after
			f := newFixture(t, cfg)
			f.clock.Advance(ahead)
			f.drain()
			full := float64(f.Config().Burst)
			f.clock.Advance(-year + time.Minute)
			require.Zero(t, f.Tokens(), "%+v", cfg)
			require.False(t, f.Allow())
			require.Positive(t, waitOf(t, f.AllowN(1)))
			f.clock.Advance(-200 * year)
			require.Equal(t, full, f.Tokens(), "%+v, drained after %v", cfg, ahead)
			f.drain()
			require.Zero(t, f.Tokens())
			require.False(t, f.Allow(), "reset once, not again and again")
		}
	}
}

func TestJumpForwardIsIdling(t *testing.T) {
	f := newFixture(t, Config{Rate: 997, Burst: 1000}) // its units need a new base every few decades
	for range 20 {
		f.drain()
		f.clock.Advance(10 * 365 * 24 * time.Hour)
		require.Equal(t, 1000.0, f.Tokens())
	}
}

// A bucket's base moves with time where its units are fine; what was taken just before stays taken.
func TestNewBaseKeepsTheBalance(t *testing.T) {
	f := newFixture(t, Config{Rate: 999_983, Burst: 10})
	span := time.Duration(f.bucket.Load().span)
	require.Less(t, span, 24*time.Hour)
	for range 10 {
		old := f.bucket.Load()
		f.clock.Advance(span - 1)
		f.drain()
		f.clock.Advance(2)
		require.False(t, f.Allow())
		require.InDelta(t, 2*0.000999983, f.Tokens(), 1e-9)
		require.NotSame(t, old, f.bucket.Load())
		f.clock.Advance(1000)
		require.True(t, f.Allow())
		require.False(t, f.Allow())
	}
}

func TestLimiterCrossesIntoABubbleAndBack(t *testing.T) {
	l := MustNew(Config{Rate: 1, Per: time.Hour, Burst: 2, MaxWait: 2 * time.Hour})
	require.NoError(t, l.AllowN(2))
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, l.AllowN(2), "a bubble is decades of idling away")
		began := time.Now()
		require.NoError(t, l.Wait(t.Context(), 1))
		require.Equal(t, time.Hour, time.Since(began))
	})
	require.NoError(t, l.AllowN(2), "and back in its own time nothing of it counts")
	require.False(t, l.Allow())
}
