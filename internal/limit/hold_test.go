package limit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Left is what is left until Deadline, whoever's it is.
func TestLeftIsTheTimeUntilDeadline(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		caller, cancel := context.WithDeadline(t.Context(), b.clk.Time().Add(5*time.Second))
		defer cancel()
		for _, row := range []struct {
			parent context.Context
			limit  time.Duration
			want   time.Duration
		}{
			{t.Context(), time.Second, time.Second}, {caller, time.Second, time.Second}, {caller, time.Minute, 5 * time.Second},
			{b.new(t.Context(), 2*time.Second), time.Minute, 2 * time.Second}, {b.new(caller, time.Hour), time.Minute, 5 * time.Second},
		} {
			require.Equal(t, row.want, b.new(row.parent, row.limit).Left())
		}
		c := b.new(t.Context(), time.Second)
		b.advance(400 * time.Millisecond)
		require.Equal(t, 600*time.Millisecond, c.Left())
		b.advance(time.Second)
		require.Zero(t, c.Left())
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = c.Left() }))
	})
}

// A held Ctx, and every one around it, outlives End, until it was released as often as it was held.
func TestHoldAndRelease(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		outer := b.new(t.Context(), time.Hour)
		inner := b.new(context.WithValue(outer, holdKey{}, 1), time.Minute)
		Hold(inner)
		Hold(inner)
		inner.End()
		outer.End()
		Release(inner)
		require.NoError(t, inner.Err())
		require.NoError(t, outer.Err())
		Release(inner)
		require.ErrorIs(t, inner.Err(), context.Canceled)
		require.ErrorIs(t, outer.Err(), context.Canceled)
		Hold(t.Context()) // nothing to hold
		Release(t.Context())
	})
}

type holdKey struct{}
