package budget

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errShutdown = errors.New("shutdown")

func TestLeftIsTheTimeUntilTheDeadline(t *testing.T) {
	clock := newClock()
	_, ok := Left(t.Context(), clock)
	require.False(t, ok, "no deadline")

	ctx, cancel := context.WithDeadline(t.Context(), clock.Now().Add(5*time.Second))
	defer cancel()
	left, ok := Left(ctx, clock)
	require.True(t, ok)
	require.Equal(t, 5*time.Second, left)

	clock.Advance(time.Hour)
	left, ok = Left(ctx, clock)
	require.True(t, ok)
	require.Zero(t, left, "never negative")
}

func TestLeftOnRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		<-time.After(time.Second)
		left, ok := Left(ctx, nil)
		require.True(t, ok)
		require.Equal(t, 2*time.Second, left)
		cancel()
		left, ok = Left(ctx, nil)
		require.True(t, ok)
		require.Equal(t, 2*time.Second, left, "a cancellation changes no deadline")
	})
}

func TestFits(t *testing.T) {
	clock := newClock()
	const none = time.Duration(-1)
	for _, c := range []struct {
		left, wait, reserve time.Duration
		want                bool
	}{
		{none, math.MaxInt64, math.MaxInt64, true}, // everything fits without a deadline
		{5 * time.Second, 4 * time.Second, 0, true},
		{5 * time.Second, 5*time.Second - 1, 0, true}, // any positive rest
		{5 * time.Second, 5 * time.Second, 0, false},  // more than 0 must be left
		{5 * time.Second, 6 * time.Second, 0, false},
		{5 * time.Second, 4 * time.Second, time.Second, true}, // at least the reserve
		{5 * time.Second, 4 * time.Second, time.Second + 1, false},
		{0, 0, 0, false}, // nothing fits once it has passed
		{1, 0, 0, true},
		{1, -time.Hour, -time.Hour, true}, // negative arguments count as 0
		{0, -time.Hour, -time.Hour, false},
		{5 * time.Second, math.MaxInt64, math.MaxInt64, false}, // the sum would overflow
		{5 * time.Second, time.Second, math.MaxInt64, false},
	} {
		ctx, cancel := t.Context(), func() {}
		if c.left != none {
			ctx, cancel = context.WithDeadline(ctx, clock.Now().Add(c.left))
		}
		require.Equal(t, c.want, Fits(ctx, clock, c.wait, c.reserve), "%+v", c)
		cancel()
	}
}

func TestFitsSaturatesWithADeadlineInTheFarFuture(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	defer cancel()
	require.True(t, Fits(ctx, newClock(), math.MaxInt64-1, 0))
	require.False(t, Fits(ctx, newClock(), math.MaxInt64, math.MaxInt64))
}

func TestSleepSleepsExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, Sleep(t.Context(), nil, 90*time.Minute))
		require.Equal(t, 90*time.Minute, time.Since(start))
	})
}

func TestSleepOnAFakeClockStopsItsTimerWhenCtxEnds(t *testing.T) {
	clock := newClock()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() { done <- Sleep(ctx, clock, time.Hour) }()
	require.NoError(t, clock.BlockUntilContext(t.Context(), 1))
	cancel(errShutdown)
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errShutdown)
	require.False(t, pending(clock), "the timer was stopped")

	go func() { done <- Sleep(t.Context(), clock, time.Hour) }()
	require.NoError(t, clock.BlockUntilContext(t.Context(), 1))
	clock.Advance(time.Hour)
	require.NoError(t, <-done)
}

func TestSleepIsEndedByCtxAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errShutdown)
		defer cancel()
		start := time.Now()
		err := Sleep(ctx, nil, time.Hour)
		require.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errShutdown)
	})
}

func TestSleepOfNothingReturnsAtOnceWithCtxsError(t *testing.T) {
	clock := newClock()
	done, cancel := context.WithCancelCause(t.Context())
	cancel(errShutdown)
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		require.NoError(t, Sleep(t.Context(), clock, d))
		require.ErrorIs(t, Sleep(done, clock, d), errShutdown)
	}
	require.ErrorIs(t, Sleep(done, clock, time.Hour), errShutdown, "no timer is started")
	require.False(t, pending(clock))
}

func TestSleepThatEndsTogetherWithCtxIsCtxs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newClock()
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { result <- Sleep(ctx, clock, time.Second) }()
		synctest.Wait()
		cancel(errShutdown)
		clock.Advance(time.Second) // both are ready before the sleeper runs
		require.ErrorIs(t, <-result, errShutdown)
	})
}

func TestWithReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for _, c := range []struct{ d, want time.Duration }{
			{time.Second, 4 * time.Second},
			{0, 5 * time.Second}, {-time.Hour, 5 * time.Second}, {math.MinInt64, 5 * time.Second}, // the deadline stays
			{5*time.Second - 1, 1},
		} {
			ctx, cancel := WithReserve(outer, c.d)
			left, ok := Left(ctx, nil)
			require.True(t, ok)
			require.Equal(t, c.want, left)
			require.NoError(t, ctx.Err())
			cancel()
			require.ErrorIs(t, ctx.Err(), context.Canceled)
		}
		for _, d := range []time.Duration{5 * time.Second, time.Hour, math.MaxInt64} {
			ctx, cancel := WithReserve(outer, d)
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, "expired already")
			cancel()
		}
		ctx, cancel := WithReserve(t.Context(), time.Second)
		_, ok := ctx.Deadline()
		require.False(t, ok, "without a deadline there is none to move")
		cancel()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
	})
}
