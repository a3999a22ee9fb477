package limit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeepOutlivesEnd(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		c := b.new(context.Background(), time.Second)
		release := Keep(c)
		c.End()
		require.NoError(t, c.Err())
		require.False(t, closed(c))
		release()
		require.Equal(t, context.Canceled, c.Err())
		require.True(t, closed(c))
		release()
		release()
		if b.fake != nil {
			require.Zero(t, b.fake.pending.Load())
		}
	})
}

// Releasing early leaves the cancelling to End.
func TestReleaseBeforeEnd(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		c := b.new(context.Background(), time.Second)
		release := Keep(c)
		release()
		release()
		require.NoError(t, c.Err())
		c.End()
		require.Equal(t, context.Canceled, c.Err())
	})
}

// A kept context still has its deadline and its parent.
func TestKeptEndsByItself(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		c := b.new(context.Background(), 3*time.Millisecond)
		release := Keep(c)
		c.End()
		b.advance(3 * time.Millisecond)
		require.Equal(t, context.DeadlineExceeded, c.Err())
		require.IsType(t, (*testCause)(nil), context.Cause(c))
		release()
		require.Equal(t, context.DeadlineExceeded, c.Err())

		parent, cancel := context.WithCancelCause(context.Background())
		c = b.new(parent, time.Second)
		release = Keep(c)
		c.End()
		cancel(errGone)
		require.Equal(t, errGone, context.Cause(c))
		release()
		if b.fake != nil {
			require.Zero(t, b.fake.pending.Load())
		}
	})
}

// Two keep the same one: the last release ends it, whichever that is, and a second release of one is not another's.
func TestKeepsAreCounted(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		c := b.new(context.Background(), time.Second)
		first, second := Keep(c), Keep(c)
		c.End()
		second()
		second()
		second()
		require.NoError(t, c.Err())
		first()
		require.Equal(t, context.Canceled, c.Err())
	})
}

// Every limit around is kept, or the outer one's End would take the inner one along.
func TestKeepReachesThroughTheChain(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		type k struct{}
		outer := b.new(context.Background(), time.Second)
		between, cancel := context.WithCancel(context.WithValue(outer, k{}, 1))
		defer cancel()
		inner := b.new(between, time.Second/2)
		ctx := context.WithValue(inner, k{}, 2)
		release := Keep(ctx)
		inner.End()
		outer.End()
		require.NoError(t, inner.Err())
		require.NoError(t, outer.Err())
		release()
		require.Equal(t, context.Canceled, inner.Err())
		require.Equal(t, context.Canceled, outer.Err())
	})
}

// Keeping an outer one says nothing of those inside.
func TestKeepOfTheOuterOne(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		outer := b.new(context.Background(), time.Second)
		inner := b.new(outer, time.Second/2)
		release := Keep(outer)
		inner.End()
		require.Equal(t, context.Canceled, inner.Err())
		outer.End()
		require.NoError(t, outer.Err())
		release()
		require.Equal(t, context.Canceled, outer.Err())
	})
}

func TestKeepOfForeignContexts(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	release := Keep(ctx)
	release()
	release()
	require.NoError(t, ctx.Err())
}

func TestKeepAfterTheEnd(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		for _, touch := range []bool{false, true} {
			c := b.new(context.Background(), time.Second)
			if touch {
				c.Done()
			}
			c.End()
			release := Keep(c)
			require.Equal(t, context.Canceled, c.Err(), "what has ended stays so")
			release()
			c.End()
			require.Equal(t, context.Canceled, c.Err())
		}
	})
}

// The verdict is End's, whatever happens to a kept context later.
func TestKeptVerdictStays(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		parent, cancel := context.WithCancel(context.Background())
		c := b.new(parent, time.Second)
		end := b.clk.Now()
		release := Keep(c)
		c.End()
		cancel()
		require.Equal(t, context.Canceled, c.Err())
		fired, by := c.Ended(end)
		require.False(t, fired)
		require.NoError(t, by)
		release()
	})
}
