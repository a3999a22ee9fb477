package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

type tenant struct{}

// planB says what the fallback saw.
type planB struct {
	calls int
	err   error
	left  time.Duration
	alive bool
	value any
}

func (b *planB) run(ctx context.Context, err error) (string, error) {
	b.calls++
	b.err, b.alive, b.value = err, ctx.Err() == nil, ctx.Value(tenant{})
	if deadline, ok := ctx.Deadline(); ok {
		b.left = time.Until(deadline)
	}
	return "plan B", nil
}

// Section 3, DoOr: called for every error with ctx, told the call's error, after OnRejected.
func TestFallbackIsToldTheCallsError(t *testing.T) {
	ctx := context.WithValue(t.Context(), tenant{}, 7)
	var b planB
	p := pipeline.For("p").Bulkhead(&rule{acquire: func(context.Context) error { return &no{} }}).
		OnRejected(func(_ context.Context, err error) error { return &unavailable{cause: err} }).MustBuild()
	v, err := pipeline.DoOr(ctx, p, func(context.Context) (string, error) { return "", nil }, b.run)
	require.NoError(t, err)
	require.Equal(t, "plan B", v)
	require.IsType(t, &unavailable{}, b.err)
	require.True(t, rejection.Is(b.err))
	require.Equal(t, planB{calls: 1, err: b.err, alive: true, value: 7}, b)
}

// Not called for a success; it may decline by returning the error; its value is dropped with an error.
func TestFallbackMayDecline(t *testing.T) {
	p := pipeline.For("p").MustBuild()
	v, err := pipeline.DoOr(t.Context(), p, fails(0, nil), func(context.Context, error) (int, error) { t.Fatal("no need"); return 0, nil })
	require.NoError(t, err)
	require.Equal(t, 1, v)
	v, err = pipeline.DoOr(t.Context(), p, fails(1, errDown), func(_ context.Context, err error) (int, error) { return 9, err })
	require.Same(t, errDown, err)
	require.Zero(t, v)
	_, err = pipeline.DoOr(t.Context(), p, fails(1, errDown), nil)
	require.Same(t, errDown, err)
}

// Skipped when the caller cancelled: before, during fn, and during a backoff.
func TestFallbackIsSkippedWhenTheCallerCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("p").Retry(steady()).MustBuild()
		for _, after := range []time.Duration{0, 10 * time.Millisecond, 150 * time.Millisecond} {
			ctx, cancel := context.WithCancel(t.Context())
			if after == 0 {
				cancel()
			}
			stop := time.AfterFunc(after, cancel)
			var b planB
			_, err := pipeline.DoOr(ctx, p, func(context.Context) (string, error) {
				<-time.After(50 * time.Millisecond)
				return "", errDown
			}, b.run)
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, b.calls, after)
			stop.Stop()
		}
	})
}

// Called when the deadline or the total timeout passed, with a context that lives again and keeps ctx's values.
func TestFallbackContextLivesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := context.WithValue(t.Context(), tenant{}, 7)
		hang := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		for name, test := range map[string]struct {
			b    pipeline.Builder
			call time.Duration // the caller's deadline
			left time.Duration
		}{
			"caller's deadline":   {pipeline.For("p"), time.Second, time.Second},
			"with a limit":        {pipeline.For("p").AttemptTimeout(limitOf(time.Hour)).FallbackTimeout(3 * time.Second), time.Second, 3 * time.Second},
			"total timeout":       {pipeline.For("p").Timeout(limitOf(time.Second)), 0, time.Second},
			"total, caller lives": {pipeline.For("p").Timeout(limitOf(time.Second)).FallbackTimeout(time.Minute), 31 * time.Second, 30 * time.Second},
		} {
			ctx, cancel := base, context.CancelFunc(func() {})
			if test.call > 0 {
				ctx, cancel = context.WithTimeout(base, test.call)
			}
			var b planB
			v, err := pipeline.DoOr(ctx, test.b.MustBuild(), hang, b.run)
			require.NoError(t, err, name)
			require.Equal(t, "plan B", v)
			require.True(t, b.alive, name)
			require.Equal(t, test.left, b.left, name)
			require.Equal(t, 7, b.value)
			require.ErrorIs(t, b.err, context.DeadlineExceeded)
			cancel()
		}
	})
}

// An attempt timeout is the call's failure, not its end: the fallback gets ctx itself. After fn's panic there is no plan B.
func TestFallbackAfterAnAttemptTimeoutAndAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("p").AttemptTimeout(limitOf(time.Second)).MustBuild()
		ctx := t.Context()
		_, err := pipeline.DoOr(ctx, p, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", errDown },
			func(got context.Context, err error) (string, error) {
				require.Equal(t, ctx, got)
				require.ErrorIs(t, err, timeout.ErrTimeout)
				return "", nil
			})
		require.NoError(t, err)
		require.PanicsWithValue(t, "fn", func() {
			_, _ = pipeline.DoOr(ctx, p, func(context.Context) (string, error) { panic("fn") },
				func(context.Context, error) (string, error) { t.Fatal("no plan B"); return "", nil })
		})
	})
}

// The context of a fallback ends with it.
func TestRevivedContextEndsWithTheFallback(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	var kept context.Context
	_, err := pipeline.DoOr(ctx, pipeline.For("p").MustBuild(), fails(0, nil), func(ctx context.Context, err error) (int, error) {
		kept = ctx
		require.NoError(t, ctx.Err())
		return 0, errors.Join(err)
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, kept.Err(), context.Canceled)
}

// The zero Pipeline's fallback lives for the default time as well, and its end says whose time it was.
func TestFallbackOfTheZeroPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		var p pipeline.Pipeline
		_, err := pipeline.DoOr(ctx, &p, fails(0, nil), func(ctx context.Context, err error) (int, error) {
			require.NoError(t, ctx.Err())
			deadline, _ := ctx.Deadline()
			require.Equal(t, time.Second, time.Until(deadline))
			return 0, err
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestFallbackTimeIsNamedInItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		_, err := pipeline.DoOr(ctx, pipeline.For("x").MustBuild(), fails(0, nil), func(ctx context.Context, _ error) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		require.EqualError(t, err, `timeout "fallback of x": limit of 1s reached`)
	})
}
