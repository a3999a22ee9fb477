package clock

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

func TestWhatIsReal(t *testing.T) {
	fake := clockwork.NewFakeClock()
	require.True(t, IsReal(nil))
	require.True(t, IsReal(clockwork.NewRealClock()))
	require.False(t, IsReal(fake))
	require.True(t, Of(nil).Real())
	require.True(t, Of(clockwork.NewRealClock()).Real())
	require.False(t, Of(fake).Real())
	require.True(t, Clock{}.Real(), "the zero Clock")
}

func TestSame(t *testing.T) {
	a, b := clockwork.NewFakeClock(), clockwork.NewFakeClock()
	require.True(t, Same(nil, nil))
	require.True(t, Same(nil, clockwork.NewRealClock()))
	require.True(t, Same(clockwork.NewRealClock(), clockwork.NewRealClock()))
	require.True(t, Same(a, a))
	require.False(t, Same(a, b))
	require.False(t, Same(a, nil))
	require.False(t, Same(clockwork.NewRealClock(), a))
	require.True(t, Same(byValue{a, nil}, byValue{a, nil}))
	require.False(t, Same(byValue{a, nil}, byValue{b, nil}))
	require.False(t, Same(byValue{a, nil}, a))
	require.False(t, Same(byValue{a, []int{1}}, byValue{a, []int{1}}), "what cannot be compared is never the same, and does not panic")
	require.False(t, Same(sliced{a, nil}, sliced{a, nil}))
}

type byValue struct {
	clockwork.Clock
	extra any
}

type sliced struct {
	clockwork.Clock
	extra []int
}

func TestInjectedNowBeginsAtZero(t *testing.T) {
	fake := clockwork.NewFakeClockAt(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC))
	c := Of(fake)
	require.Zero(t, c.Now())
	fake.Advance(time.Minute)
	require.EqualValues(t, time.Minute, c.Now())
	require.Equal(t, fake.Now(), c.Time())
	require.EqualValues(t, time.Minute, c.At(fake.Now()))
	require.EqualValues(t, 0, Of(fake).Now(), "each has an epoch of its own")
}

// All readings of real time are on one scale, which no wall clock step moves.
func TestRealNowIsOneMonotonicScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Of(nil), Clock{}
		require.Equal(t, a.Now(), b.Now())
		before := a.Now()
		<-time.After(time.Hour)
		require.EqualValues(t, time.Hour, b.Now()-before)
	})
}

// A deadline made by package context is an instant to the nanosecond, with or without its monotonic reading.
func TestAtAndTimeOfAreInverse(t *testing.T) {
	fake := clockwork.NewFakeClock()
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]Clock{"real": Of(nil), "injected": Of(fake)} {
			for _, d := range []time.Duration{0, 1, time.Second, 90 * 24 * time.Hour, -time.Hour} {
				at := Add(c.Now(), d)
				require.Equal(t, at, c.At(c.TimeOf(at)), "%s %v", name, d)
				require.Equal(t, at, c.At(c.Time().Add(d)), "%s %v", name, d)
				require.Equal(t, at, c.At(c.Time().Add(d).Round(0)), "%s %v without a monotonic reading", name, d)
			}
		}
		c := Of(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		deadline, _ := ctx.Deadline()
		require.Equal(t, c.Now()+int64(time.Minute), c.At(deadline))
	})
}

// Outside a bubble time passes between two readings: TimeOf is early by that, and never late.
func TestTimeOfIsNeverLate(t *testing.T) {
	c := Of(nil)
	for range 1000 {
		at := c.Now() + int64(time.Hour)
		require.LessOrEqual(t, c.At(c.TimeOf(at)), at)
	}
}

// Instants saturate on both ends, wherever the clock stands: in a bubble, which starts in 2000, real time's Now is negative.
func TestNothingOverflows(t *testing.T) {
	for _, row := range []struct {
		at   int64
		d    time.Duration
		want int64
	}{
		{0, 0, 0}, {1, 2, 3}, {1, -2, -1}, {math.MaxInt64, 0, math.MaxInt64}, {math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64}, {1, math.MaxInt64, math.MaxInt64}, {math.MaxInt64, -1, math.MaxInt64 - 1},
		{math.MinInt64, -1, math.MinInt64}, {math.MinInt64, math.MinInt64, math.MinInt64}, {-1, math.MinInt64, math.MinInt64},
		{math.MinInt64, math.MaxInt64, -1}, {-5, math.MaxInt64, math.MaxInt64 - 5},
	} {
		require.Equal(t, row.want, Add(row.at, row.d), "%d + %d", row.at, row.d)
	}
	far := func(t *testing.T) {
		c := Of(nil)
		require.True(t, c.TimeOf(math.MaxInt64).After(c.Time().AddDate(200, 0, 0)), "%v", c.TimeOf(math.MaxInt64))
		require.True(t, c.TimeOf(math.MinInt64).Before(c.Time().AddDate(-200, 0, 0)), "%v", c.TimeOf(math.MinInt64))
		require.Greater(t, c.At(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), int64(math.MaxInt64/2))
		require.Less(t, c.At(time.Time{}), int64(math.MinInt64/2))
	}
	far(t)
	synctest.Test(t, func(t *testing.T) {
		require.Negative(t, Of(nil).Now())
		far(t)
	})
}

func TestUntilAndLeft(t *testing.T) {
	fake := clockwork.NewFakeClock()
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]Clock{"real": Of(nil), "injected": Of(fake)} {
			require.Equal(t, time.Second, c.Until(c.Time().Add(time.Second)), name)
			require.Equal(t, -time.Second, c.Until(c.Time().Add(-time.Second)), name)
			_, ok := c.Left(context.Background())
			require.False(t, ok, name)
			for d, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, -time.Minute: 0} {
				ctx, cancel := context.WithDeadline(t.Context(), c.Time().Add(d))
				left, ok := c.Left(ctx)
				cancel()
				require.True(t, ok, name)
				require.Equal(t, want, left, name)
			}
		}
	})
}

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := clockwork.NewFakeClock()
		pass := map[string]func(time.Duration){
			"real":     func(d time.Duration) { <-time.After(d) },
			"injected": func(d time.Duration) { fake.Advance(d) },
		}
		for name, c := range map[string]Clock{"real": Of(nil), "injected": Of(fake)} {
			timer, stopped := c.NewTimer(time.Second), c.NewTimer(time.Second)
			var ran, never atomic.Bool
			stopRan, stopNever := c.AfterFunc(time.Second, func() { ran.Store(true) }), c.AfterFunc(time.Second, func() { never.Store(true) })
			pass[name](time.Second / 2)
			synctest.Wait()
			require.True(t, stopped.Stop(), name)
			require.True(t, stopNever(), name)
			require.False(t, ran.Load(), name)
			require.Empty(t, timer.C, name)
			pass[name](time.Second / 2)
			synctest.Wait()
			require.True(t, ran.Load(), name)
			require.False(t, never.Load(), name)
			<-timer.C
			require.False(t, timer.Stop(), name)
			require.False(t, stopped.Stop(), name)
			require.False(t, stopRan(), name)
		}
	})
}

// A Clock is read on every call: no reading allocates.
func TestReadingAllocatesNothing(t *testing.T) {
	c, injected := Of(nil), Of(clockwork.NewFakeClock())
	deadline := c.Time().Add(time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = c.Now(), injected.Now()
		_, _ = c.Both()
		_, _ = injected.Both()
		_, _ = c.At(deadline), c.TimeOf(5)
		_, _ = c.Left(ctx)
	}))
}

func BenchmarkNow(b *testing.B) {
	c := Of(nil)
	for b.Loop() {
		c.Now()
	}
}

// BenchmarkFloorNow is what a reading costs without this package.
func BenchmarkFloorNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}

func TestAnotherNamesBothClocks(t *testing.T) {
	fake := clockwork.NewFakeClock()
	for _, row := range []struct {
		was, next clockwork.Clock
		is, want  string
	}{
		{nil, fake, "a *clockwork.FakeClock", "real time"},
		{fake, nil, "real time", "a *clockwork.FakeClock"},
		{fake, clockwork.NewRealClock(), "real time", "a *clockwork.FakeClock"},
		{fake, clockwork.NewFakeClock(), "another *clockwork.FakeClock", "a *clockwork.FakeClock"},
	} {
		is, want := Another(row.was, row.next)
		require.Equal(t, row.is, is)
		require.Equal(t, "the one that it was made with, "+row.want+": it may not change", want)
	}
}
