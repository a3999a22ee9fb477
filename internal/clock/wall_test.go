package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// requireOne says that at and t are the same instant of c, and that it lies between before and after.
func requireOne(t *testing.T, c Clock, before, after time.Time, at int64, is time.Time) {
	t.Helper()
	require.Equal(t, c.At(is), at)
	require.False(t, is.Before(before), "%v before %v", is, before)
	require.False(t, is.After(after), "%v after %v", is, after)
}

func TestBothIsOneReading(t *testing.T) {
	real := func() {
		for range 1000 {
			before := time.Now()
			at, is := Of(nil).Both()
			after := time.Now()
			requireOne(t, Of(nil), before, after, at, is)
			require.NotEqual(t, is, is.Round(0), "it has a monotonic reading")
			requireOne(t, Of(nil), before.Round(0).Add(-time.Second), after.Round(0).Add(time.Second), at, is) // by the wall clock
		}
	}
	real()
	synctest.Test(t, func(t *testing.T) { // decades away, and back
		for _, pause := range []time.Duration{0, 1, time.Second - 1, time.Second, time.Hour, 24 * 365 * time.Hour} {
			<-time.After(pause + 1)
			now := time.Now()
			at, is := Of(nil).Both()
			requireOne(t, Of(nil), now, now, at, is)
			require.Equal(t, now, is, pause)
		}
	})
	real()
	fake := clockwork.NewFakeClock()
	c := Of(fake)
	for range 3 {
		fake.Advance(time.Minute)
		at, is := c.Both()
		requireOne(t, c, fake.Now(), fake.Now(), at, is)
	}
}

// An instant is placed by the process's last wall, which somebody else may have made a little later.
func TestBothOfAnInstantBeforeTheWall(t *testing.T) {
	t.Cleanup(func() { lately.Store(nil) })
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for ahead, near := range map[time.Duration]bool{time.Second / 2: true, time.Second: true, time.Second + 1: false, time.Hour: false} {
			then := now.Add(ahead)
			lately.Store(&wall{Of(nil).At(then), then})
			at, is := Of(nil).Both()
			requireOne(t, Of(nil), now, now, at, is)
			require.Equal(t, near, lately.Load().time.Equal(then), ahead)
		}
	})
}

// A step of the wall clock shows when the next wall is made, a second later at most.
func TestBothSeesAStepOfTheWallClock(t *testing.T) {
	t.Cleanup(func() { lately.Store(nil) })
	synctest.Test(t, func(t *testing.T) {
		at, _ := Of(nil).Both()
		lately.Store(&wall{at, time.Now().Add(-time.Hour)}) // what the clock said before the step
		_, is := Of(nil).Both()
		require.Equal(t, time.Now().Add(-time.Hour), is)
		<-time.After(time.Second + 1)
		_, is = Of(nil).Both()
		require.Equal(t, time.Now(), is)
	})
}
