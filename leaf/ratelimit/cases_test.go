package ratelimit

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// C21: nothing is consumed for work that cannot be wanted any more.
func TestDoneContextTakesNoToken(t *testing.T) {
	errX := errors.New("x")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(errX)
	f := newFixture(t, Config{Rate: 1, Burst: 1, MaxWait: time.Hour})
	for _, acquire := range []func(context.Context) (leaf.Permit, error){f.Acquire, f.TryAcquire} {
		_, err := acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errX)
		require.NotErrorIs(t, err, ErrLimited)
	}
	require.ErrorIs(t, f.Wait(ctx, 1), errX)
	require.ErrorIs(t, f.Wait(ctx, 0), errX)
	require.Equal(t, 1.0, f.Tokens())
	_, err := f.Acquire(bg)
	require.NoError(t, err)
}

// C23: refusals are immediate and cost nothing, however many; each admission takes exactly one token.
func TestFloodOfWaitersIsRefusedAtOnceAndLeavesNoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MustNew(Config{Rate: 1, Burst: 5, MaxWait: 2 * time.Second})
		began := time.Now()
		var mu sync.Mutex
		admitted, refused := map[time.Duration]int{}, map[time.Duration]int{}
		var wg sync.WaitGroup
		for range 2000 {
			wg.Go(func() {
				err := l.Wait(t.Context(), 1)
				mu.Lock()
				defer mu.Unlock()
				if at := time.Since(began); err == nil {
					admitted[at]++
				} else {
					refused[at]++
					require.Equal(t, 3*time.Second, waitOf(t, err), "two are in front")
				}
			})
		}
		synctest.Wait()
		<-time.After(2 * time.Second)
		require.Zero(t, l.Tokens(), "no debt, and no token left over, also before the last waiter ran")
		wg.Wait()
		require.Equal(t, map[time.Duration]int{0: 5, time.Second: 1, 2 * time.Second: 1}, admitted)
		require.Equal(t, map[time.Duration]int{0: 1993}, refused)
		require.Equal(t, 2*time.Second, time.Since(began))
		<-time.After(999 * time.Millisecond)
		require.False(t, l.Allow())
		<-time.After(time.Millisecond)
		require.True(t, l.Allow())
		<-time.After(5 * time.Second)
		require.Equal(t, 5.0, l.Tokens())
	})
}

// C24: more than the bucket can hold is a mistake, not a delay; exactly its capacity can be had; amounts are not negative.
func TestAmountsAtAndBeyondTheBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MustNew(Config{Name: "api", Rate: 1, Burst: 5, MaxWait: time.Minute})
		began := time.Now()
		err := l.Wait(t.Context(), 6)
		require.EqualError(t, err, `ratelimit: "api": n is 6: want 0 to 5 (Burst)`)
		require.NotErrorIs(t, err, ErrLimited)
		require.NotImplements(t, (*interface{ Rejected() bool })(nil), err)
		require.Equal(t, 5.0, l.Tokens())
		require.NoError(t, l.AllowN(5))
		require.Zero(t, l.Tokens())
		require.NoError(t, l.Wait(t.Context(), 5))
		require.Equal(t, 5*time.Second, time.Since(began))

		full := MustNew(Config{Rate: 1, Burst: 5})
		require.NoError(t, full.AllowN(0))
		require.NoError(t, full.Wait(t.Context(), 0))
		require.Error(t, full.AllowN(-1))
		require.Error(t, full.AllowN(math.MinInt))
		require.Error(t, full.AllowN(math.MaxInt))
		require.Error(t, full.Wait(t.Context(), -1))
		require.NotErrorIs(t, full.AllowN(-1), ErrLimited)
		require.Equal(t, 5.0, full.Tokens())
	})
}

// C25 a: an operation that carries a stale now neither mints nor refunds too much, whichever it is.
func TestStaleNowMintsNothing(t *testing.T) {
	cfg := Config{Rate: 1, Burst: 100}
	for name, stale := range map[string]func(f fixture){
		"allow":  func(f fixture) { require.False(t, f.Allow()) },
		"tokens": func(f fixture) { require.Zero(t, f.Tokens()) },
		"update": func(f fixture) {
			cfg := f.Config()
			cfg.Rate = 2
			require.NoError(t, f.Update(cfg))
			cfg.Rate = 1
			require.NoError(t, f.Update(cfg))
		},
		"refused wait": func(f fixture) { require.Equal(t, 2*time.Second, waitOf(t, f.Wait(bg, 1))) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, cfg)
			f.at(10).drain()
			f.at(9)
			stale(f)
			require.Equal(t, 1.0, f.at(11).Tokens())
		})
	}
}

// C25 a: a rate that is changed while the clock is behind counts from where time really was.
func TestUpdateWithAStaleNowDoesNotRefillThePastAtTheNewRate(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Burst: 100})
	f.at(10).drain()
	cfg := f.Config()
	cfg.Rate = 10
	require.NoError(t, f.at(9).Update(cfg))
	require.Zero(t, f.at(10).Tokens())
	require.Equal(t, 10.0, f.at(11).Tokens())
}

// C25 b
func TestClockThatStepsBackMintsNothing(t *testing.T) {
	f := newFixture(t, Config{Rate: 10, Burst: 10})
	f.at(100).drain()
	f.at(40)
	require.Zero(t, f.Tokens())
	require.False(t, f.Allow())
	require.Equal(t, 60*time.Second+100*time.Millisecond, waitOf(t, f.AllowN(1)))
	require.Equal(t, 1.0, f.at(100.1).Tokens())
}

// C25 b, where the clock steps back behind the instant at which the limiter was made: the wait that is advised has the step in it.
func TestClockThatStepsBackBehindTheBeginningAdvisesTheWholeWait(t *testing.T) {
	f := newFixture(t, Config{Rate: 10, Burst: 10, MaxWait: time.Minute})
	f.drain()
	f.at(-60)
	require.Zero(t, f.Tokens())
	require.False(t, f.Allow())
	require.Equal(t, 60*time.Second+100*time.Millisecond, waitOf(t, f.AllowN(1)))
	require.Equal(t, 60*time.Second+100*time.Millisecond, waitOf(t, f.Wait(bg, 1)), "longer than MaxWait: refused now")
	require.Equal(t, 1.0, f.at(0.1).Tokens())
}

// C25 c
func TestCenturyOfIdlingOverflowsNothing(t *testing.T) {
	for _, idle := range []time.Duration{3 * time.Hour, 100 * 365 * 24 * time.Hour} {
		f := newFixture(t, Config{Rate: 1_000_000, Burst: 1_000_000})
		f.drain()
		f.clock.Advance(idle)
		require.Equal(t, 1e6, f.Tokens())
		require.NoError(t, f.AllowN(1_000_000), "after %v", idle)
		require.False(t, f.Allow())
		require.Equal(t, time.Microsecond, waitOf(t, f.AllowN(1)))
	}
}

// C26 a
func TestFractionsOfATokenAreKept(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Per: 10 * time.Second, Burst: 5})
	f.replay(row{0, 5, true, 0}, row{25, 2, true, 0.5}, row{29, 1, false, 0.9}, row{30, 1, true, 0})
}

// C26 b: polling faster than the interval costs nothing.
func TestPolledKeyGetsItsWholeRate(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Per: 10 * time.Second, Burst: 5})
	f.drain()
	var admitted []int
	for s := 1; s <= 100; s++ {
		if f.at(float64(s)).Allow() {
			admitted = append(admitted, s)
		}
	}
	require.Equal(t, []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, admitted)
}

// C27 a
func TestDueIsDueAtTheExactInstant(t *testing.T) {
	f := newFixture(t, Config{Rate: 1, Burst: 1})
	f.drain()
	for i := 1; i <= 9; i++ {
		f.clock.Advance(100 * time.Millisecond)
		require.False(t, f.Allow(), i)
	}
	f.clock.Advance(100 * time.Millisecond)
	require.True(t, f.Allow())
}

// C27 b, c: the advised wait is the first nanosecond that is enough, and not the one before.
func TestAdvisedWaitIsTheFirstNanosecondThatIsEnough(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		n    int
		want time.Duration
	}{
		{Config{Rate: 3, Burst: 1}, 1, 333_333_334},
		{Config{Rate: 3, Burst: 3}, 2, 666_666_667},
		{Config{Rate: 3, Burst: 3}, 3, time.Second},
		{Config{Rate: 10, Per: 13 * time.Second, Burst: 1}, 1, 1_300 * time.Millisecond},
		{Config{Rate: 7, Per: time.Minute, Burst: 1}, 1, 8_571_428_572},
		{Config{Rate: 997, Burst: 1}, 1, 1_003_010},
		{Config{Rate: 99_991, Per: 24 * time.Hour, Burst: 99_991}, 1, 864_077_767},
		{Config{Rate: 1, Per: 876_000 * time.Hour, Burst: 100_000}, 1, 876_000 * time.Hour},
	} {
		for early := range time.Duration(2) {
			f := newFixture(t, c.cfg)
			f.drain()
			wait := waitOf(t, f.AllowN(c.n))
			require.InDelta(t, int64(c.want), int64(wait), float64(c.want)*1e-9, "%+v", c.cfg)
			if early == 0 && f.bucket.Load().shift == 0 {
				require.Equal(t, c.want, wait, "%+v", c.cfg)
			}
			f.clock.Advance(wait - early)
			require.Equal(t, early == 0, f.AllowN(c.n) == nil, "%+v %d ns early", c.cfg, early)
		}
	}
}

// C27 d: thirds of a second do not add up to a drift.
func TestBackToBackWaitsDoNotDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := MustNew(Config{Rate: 3, Burst: 1, MaxWait: time.Second})
		require.NoError(t, l.Wait(t.Context(), 1))
		began := time.Now()
		for range 3000 {
			require.NoError(t, l.Wait(t.Context(), 1))
		}
		require.InDelta(t, float64(1000*time.Second), float64(time.Since(began)), float64(10*time.Microsecond))
	})
}

// C45: a rate of 0 is no limiter; a bucket that is never refilled is a quota, which is empty for ever and says so at once.
func TestSpentQuotaRefusesForEverAndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := New(Config{Rate: 0, Burst: 3})
		require.ErrorContains(t, err, "Rate is 0")
		q := MustNewQuota("trial", 3)
		require.NoError(t, q.AllowN(3))
		<-time.After(1e9 * time.Second)
		require.False(t, q.Allow())
		began := time.Now()
		err = q.Wait(t.Context(), 1)
		require.Less(t, waitOf(t, err), time.Duration(0))
		require.Zero(t, time.Since(began))
		_, ok := err.(*LimitedError).RetryAfter()
		require.False(t, ok)
	})
}
