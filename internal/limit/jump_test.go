package limit

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/internal/clock"
)

// A Ctx that was made outside is further ahead than its limit can be for who uses it in a bubble, which starts in 2000.
func TestCrossingIntoABubbleBeginsAnew(t *testing.T) {
	clk := clock.Of(nil)
	c := New(context.Background(), clk, clk.Now()+int64(5*time.Second), &Spec{"test", 5 * time.Second, newTestCause})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, c.Err())
		<-c.Done()
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, context.DeadlineExceeded, c.Err())
		deadline, _ := c.Deadline()
		require.True(t, deadline.Equal(began.Add(5*time.Second)))
		fired, _ := c.Ended(clk.Now())
		require.True(t, fired)
		c.End()
	})
}

// The other way the limit is long over.
func TestLeavingABubble(t *testing.T) {
	clk := clock.Of(nil)
	var c *Ctx
	synctest.Test(t, func(t *testing.T) {
		c = New(context.Background(), clk, clk.Now()+int64(time.Hour), &Spec{"test", time.Hour, newTestCause})
	})
	require.Equal(t, context.DeadlineExceeded, c.Err())
	fired, _ := c.Ended(clk.Now())
	require.True(t, fired)
	c.End()
}

// Instants saturate, so that the longest limit never fires and nothing overflows, wherever the clock stands.
func TestLongestLimit(t *testing.T) {
	check := func(t *testing.T, clk clock.Clock) {
		c := New(context.Background(), clk, clock.Add(clk.Now(), math.MaxInt64), &Spec{"test", math.MaxInt64, newTestCause})
		require.NoError(t, c.Err())
		deadline, ok := c.Deadline()
		require.True(t, ok)
		require.True(t, deadline.After(time.Now().AddDate(200, 0, 0)))
		require.False(t, closed(c))
		require.NoError(t, c.Err())
		inner := New(c, clk, clock.Add(clk.Now(), time.Hour), &Spec{"inner", time.Hour, newTestCause})
		require.False(t, closed(inner))
		at, _ := inner.Deadline()
		require.False(t, at.After(time.Now().Add(time.Hour)))
		inner.End()
		c.End()
	}
	t.Run("real", func(t *testing.T) { check(t, clock.Of(nil)) })
	t.Run("bubble", func(t *testing.T) {
		outside := clock.Of(nil)
		made := New(context.Background(), outside, math.MaxInt64, &Spec{"test", math.MaxInt64, newTestCause})
		synctest.Test(t, func(t *testing.T) {
			check(t, clock.Of(nil))
			require.NoError(t, made.Err())
			require.False(t, closed(made))
			made.End()
		})
	})
	t.Run("injected", func(t *testing.T) { check(t, clock.Of(clockwork.NewFakeClock())) })
}

// A parent's deadline without a monotonic reading is placed when New sees it, and not again by the wall clock: a limit that
// New found to be earlier keeps its timer, even if the wall clock then says that the parent is over.
func TestParentDeadlineOfTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.Of(nil)
		parent := &steppable{Context: context.Background(), deadline: time.Now().Add(time.Hour).Round(0)}
		c := New(parent, clk, clk.Now()+int64(time.Second), &Spec{"test", time.Second, newTestCause})
		parent.deadline = time.Now().Add(-time.Hour).Round(0) // as after a step of the wall clock
		began := time.Now()
		<-c.Done()
		require.Equal(t, time.Second, time.Since(began))
		require.IsType(t, (*testCause)(nil), context.Cause(c))
		c.End()
	})
}

type steppable struct {
	context.Context
	deadline time.Time
}

func (s *steppable) Deadline() (time.Time, bool) { return s.deadline, true }
