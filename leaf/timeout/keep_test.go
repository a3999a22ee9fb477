package timeout_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/timeout"
)

// body is a stream that is read after the callback returned: chunk bytes every 3 ms for as long as its context lives.
type body struct {
	ctx     context.Context
	left    int
	chunk   int
	release func()
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.release()
		return 0, io.EOF
	}
	select {
	case <-b.ctx.Done():
		return 0, context.Cause(b.ctx)
	case <-time.After(3 * time.Millisecond):
	}
	n := min(len(p), b.chunk, b.left)
	b.left -= n
	return n, nil
}

func (b *body) Close() error { b.release(); return nil }

func open(ctx context.Context, limit *timeout.Timeout) (*body, error) {
	return timeout.Do(ctx, limit, func(ctx context.Context) (*body, error) {
		return &body{ctx: ctx, left: 1 << 20, chunk: 64 << 10, release: timeout.Keep(ctx)}, nil
	})
}

func TestKeptContextLivesUntilTheBodyIsRead(t *testing.T) { // C34
	synctest.Test(t, func(t *testing.T) {
		b, err := open(t.Context(), limit("", 5*time.Second))
		require.NoError(t, err)
		require.NoError(t, b.ctx.Err())
		all := make([]byte, 2<<20)
		n, err := io.ReadFull(b, all)
		require.Equal(t, 1<<20, n)
		require.Equal(t, io.ErrUnexpectedEOF, err)
		require.Equal(t, context.Canceled, b.ctx.Err(), "after EOF")
		require.NoError(t, b.Close())
	})
}

func TestAttemptThatKeptNothingIsOver(t *testing.T) { // C34: the 503 before the retry
	synctest.Test(t, func(t *testing.T) {
		var first context.Context
		_, err := timeout.Do(t.Context(), limit("", 5*time.Second), func(ctx context.Context) (int, error) {
			first = ctx
			ctx.Done()
			return 503, nil
		})
		require.NoError(t, err)
		require.Equal(t, context.Canceled, first.Err())
	})
}

func TestEarlyCloseEndsTheContext(t *testing.T) { // C34
	synctest.Test(t, func(t *testing.T) {
		b, err := open(t.Context(), limit("", 5*time.Second))
		require.NoError(t, err)
		_, err = io.CopyN(io.Discard, b, 1<<19)
		require.NoError(t, err)
		require.NoError(t, b.ctx.Err())
		require.NoError(t, b.Close())
		require.NoError(t, b.Close())
		require.Equal(t, context.Canceled, b.ctx.Err())
	})
}

// The limit covers the reading too: it fails with an error that matches DeadlineExceeded, and not before.
func TestLimitCoversReading(t *testing.T) { // C34
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b, err := open(t.Context(), limit("slow", 20*time.Millisecond))
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, b)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, timeout.ErrTimeout)
		require.Equal(t, 20*time.Millisecond, time.Since(began))
		require.NoError(t, b.Close())
	})
}

// The caller's end is the body's, kept or not.
func TestCallersEndEndsKeptContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b, err := open(ctx, limit("", time.Second))
		require.NoError(t, err)
		cancel()
		_, err = io.Copy(io.Discard, b)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, b.Close())
	})
}

// A body that comes out of two limits is kept in both.
func TestNestedKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outer context.Context
		b, err := timeout.Do(t.Context(), limit("outer", time.Minute), func(ctx context.Context) (*body, error) {
			outer = ctx
			return open(ctx, limit("inner", time.Second))
		})
		require.NoError(t, err)
		again := timeout.Keep(b.ctx)
		require.NoError(t, b.Close())
		require.NoError(t, b.Close(), "released twice is released once")
		require.NoError(t, b.ctx.Err())
		require.NoError(t, outer.Err())
		again()
		require.Equal(t, context.Canceled, b.ctx.Err())
		require.Equal(t, context.Canceled, outer.Err())
	})
}

func TestKeepOfAnyOtherContextDoesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := timeout.Keep(ctx)
	cancel()
	require.Equal(t, context.Canceled, ctx.Err())
	release()
	release()
}
