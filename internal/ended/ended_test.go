package ended

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func cancelled(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

func TestAliveIsNil(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, Err(ctx))
	require.NoError(t, Err(context.Background()))
}

// Where the cause adds nothing, the error is ctx.Err() itself.
func TestWithoutCauseItIsErr(t *testing.T) {
	require.Same(t, context.Canceled, Err(cancelled(nil)))
	require.Same(t, context.Canceled, Err(cancelled(context.Canceled)))
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	require.Equal(t, context.DeadlineExceeded, Err(ctx))
	require.Equal(t, error(io.EOF), Err(foreign{t.Context(), io.EOF}), "a context of somebody's own")
}

func TestMatchesErrAndCause(t *testing.T) {
	err := Err(cancelled(io.EOF))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, io.EOF)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, "context canceled: EOF")

	wrapped := fmt.Errorf("shutdown: %w", context.Canceled)
	err = Err(cancelled(wrapped))
	require.ErrorIs(t, err, wrapped, "a cause around ctx.Err() is more than that")

	err = Err(cancelled(&own{7}))
	found, ok := errors.AsType[*own](err)
	require.True(t, ok)
	require.Equal(t, 7, found.code)
}

// A cancelling may be caused by somebody's deadline: both match, and it is still a cancelling.
func TestTimeoutIsForDeadlines(t *testing.T) {
	timeout := func(err error) bool {
		found, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err)
		return ok && found.Timeout()
	}
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), io.EOF)
	defer cancel()
	require.True(t, timeout(Err(ctx)))
	require.ErrorIs(t, Err(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, Err(ctx), io.EOF)
	require.False(t, timeout(Err(cancelled(context.DeadlineExceeded))))
	require.ErrorIs(t, Err(cancelled(context.DeadlineExceeded)), context.DeadlineExceeded)
}

// A cause of a type that == cannot compare must not panic.
func TestUncomparableCause(t *testing.T) {
	err := Err(cancelled(list{1}))
	require.ErrorIs(t, err, context.Canceled)
	found, ok := errors.AsType[list](err)
	require.True(t, ok)
	require.Equal(t, list{1}, found)
	require.NotPanics(t, func() { _ = Err(foreign{context.Background(), list{1}}) })
}

func TestDeadlineInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, io.EOF)
		defer cancel()
		<-ctx.Done()
		require.ErrorIs(t, Err(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, Err(ctx), io.EOF)
	})
}

type own struct{ code int }

func (*own) Error() string { return "own" }

type list []int

func (list) Error() string { return "list" }

type foreign struct {
	context.Context
	err error
}

func (f foreign) Err() error { return f.err }

type errs struct{ of any }

func (errs) Error() string { return "list" }

// Two equal uncomparable errors: errors.Is would panic.
func TestIsOfAnUncomparableTarget(t *testing.T) {
	require.False(t, Is(errs{[]error{io.EOF}}, errs{[]error{io.EOF}}))
	require.False(t, Is(nil, nil))
	require.False(t, Is(io.EOF, nil))
	require.True(t, Is(fmt.Errorf("x: %w", io.EOF), io.EOF))
	require.False(t, Is(errs{[]error{io.EOF}}, io.EOF))
}

type loop struct{ last error }

func (loop) Error() string             { return "loop" }
func (l loop) LastFailure(Asked) error { return l.last }

func TestLastFailureOfALoopAndOfAnythingElse(t *testing.T) {
	require.Equal(t, io.EOF, LastFailure(io.EOF))
	require.Equal(t, io.EOF, LastFailure(loop{io.EOF}))
	require.NoError(t, LastFailure(loop{}))
	require.NoError(t, LastFailure(nil))
}

type follow struct{ told *int }

func (follow) Error() string        { return "follow" }
func (f follow) RetryFollows(Asked) { *f.told++ }

// The outermost that wants to know is told, wherever it is; nobody else hears anything, and nothing is no failure.
func TestTellRetryTellsTheOutermost(t *testing.T) {
	outer, inner := 0, 0
	TellRetry(fmt.Errorf("a: %w", errors.Join(io.EOF, follow{&outer}, follow{&inner})))
	require.Equal(t, []int{1, 0}, []int{outer, inner})
	TellRetry(follow{&inner})
	require.Equal(t, []int{1, 1}, []int{outer, inner})
	require.NotPanics(t, func() { TellRetry(nil); TellRetry(io.EOF); TellRetry(errs{[]int{1}}) })
}
