package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/timeout"
)

const ms = time.Millisecond

// Only this limit, firing while the caller's context lived, makes an *Error; each way, touched and not.
func TestWhoIsNamed(t *testing.T) {
	for _, row := range []struct {
		name     string
		deadline time.Duration // the caller's; 0 = none
		cancel   time.Duration // when the caller goes away; 0 = never
		fn       func(context.Context) (int, error)
		took     time.Duration
		fired    bool
	}{
		{"limit seen", 0, 0, obey, 10 * ms, true},
		{"limit unseen", 0, 0, fail(15 * ms), 15 * ms, true},
		{"exactly at the limit", 0, 0, fail(10 * ms), 10 * ms, true},
		{"just before", 0, 0, fail(10*ms - 1), 10*ms - 1, false},
		{"caller's deadline earlier, seen", 5 * ms, 0, obey, 5 * ms, false},
		{"caller's deadline earlier, unseen", 5 * ms, 0, fail(15 * ms), 15 * ms, false},
		{"caller's deadline equal, seen", 10 * ms, 0, obey, 10 * ms, false},
		{"caller's deadline equal, unseen", 10 * ms, 0, fail(15 * ms), 15 * ms, false},
		{"caller's deadline later, seen", 12 * ms, 0, obey, 10 * ms, true},
		{"caller's deadline later, unseen", 12 * ms, 0, fail(15 * ms), 15 * ms, true},
		{"caller cancelled before, seen", 0, 5 * ms, obey, 5 * ms, false},
		{"caller cancelled before, unseen", 0, 5 * ms, fail(8 * ms), 8 * ms, false},
		{"caller cancelled after, seen", 0, 12 * ms, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return fail(5 * ms)(ctx)
		}, 15 * ms, true},
		{"caller cancelled after, unseen", 0, 12 * ms, fail(15 * ms), 15 * ms, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.deadline > 0 {
					with, stop := context.WithTimeout(ctx, row.deadline)
					defer stop()
					ctx = with
				}
				if row.cancel > 0 {
					time.AfterFunc(row.cancel, cancel)
				}
				v, err := timeout.Do(ctx, limit("x", 10*ms), row.fn)
				require.Equal(t, row.took, time.Since(began))
				require.Zero(t, v, "a failed Do returns the zero value")
				if row.fired {
					require.Equal(t, &timeout.Error{Name: "x", Limit: 10 * ms, Err: errApp}, err)
				} else {
					require.Equal(t, errApp, err, "unchanged")
				}
			})
		})
	}
}

func TestSuccessIsNeverDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
		defer cancel()
		v, err := timeout.Do(ctx, limit("", 10*ms), func(ctx context.Context) (int, error) {
			<-ctx.Done()
			<-time.After(time.Hour)
			return 7, nil
		})
		require.NoError(t, err)
		require.Equal(t, 7, v)
	})
}

// A ctx that is done runs nothing; the error matches its Err and its Cause.
func TestDoneContextRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("shutdown")
	cancel(gone)
	_, err := timeout.Do(ctx, limit("", time.Second), func(context.Context) (int, error) {
		t.Error("ran")
		return 0, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, gone)
}

func TestOutermostExpiredLimitIsNamed(t *testing.T) { // C09
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), 0
		var inner []error
		_, err := timeout.Do(t.Context(), limit("outer", 2*time.Second), func(ctx context.Context) (int, error) {
			for { // a retry of 5 attempts, constant 100 ms
				_, err := timeout.Do(ctx, limit("inner", 1500*ms), func(ctx context.Context) (int, error) {
					calls++
					return obey(ctx)
				})
				inner = append(inner, err)
				select {
				case <-ctx.Done():
					return 0, err
				case <-time.After(100 * ms):
				}
			}
		})
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, &timeout.Error{Name: "outer", Limit: 2 * time.Second, Err: errApp}, err)
		require.Equal(t, []error{&timeout.Error{Name: "inner", Limit: 1500 * ms, Err: errApp}, errApp}, inner)
		<-time.After(8 * time.Second)
		require.Equal(t, 2, calls)
		require.NoError(t, t.Context().Err())
	})
}

// The inner limit fired first; when the outer one has too, that replaces it.
func TestInnerErrorIsReplacedNotWrapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do := func(pass func(error) error) error {
			_, err := timeout.Do(t.Context(), limit("outer", 20*ms), func(ctx context.Context) (int, error) {
				_, err := timeout.Do(ctx, limit("inner", 10*ms), obey)
				<-ctx.Done()
				return 0, pass(err)
			})
			return err
		}
		err := do(func(err error) error { return err })
		require.Equal(t, &timeout.Error{Name: "outer", Limit: 20 * ms, Err: errApp}, err)

		// What somebody wrapped himself is kept; the outermost is found first.
		err = do(func(err error) error { return fmt.Errorf("load: %w", err) })
		outermost, ok := errors.AsType[*timeout.Error](err)
		require.True(t, ok)
		require.Equal(t, "outer", outermost.Name)
		require.EqualError(t, outermost.Err, `load: timeout "inner": limit of 10ms reached; last failure: the callback's own error`)
		require.ErrorIs(t, err, errApp)

		// A typed nil is what the callback returned, and nothing to look into.
		err = do(func(error) error { return (*timeout.Error)(nil) })
		require.Equal(t, &timeout.Error{Name: "outer", Limit: 20 * ms, Err: (*timeout.Error)(nil)}, err)
	})
}

// An inner limit that fired while the outer one has not is the one to name.
func TestInnerErrorPassesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := timeout.Do(t.Context(), limit("outer", 20*ms), func(ctx context.Context) (int, error) {
			return timeout.Do(ctx, limit("inner", 10*ms), obey)
		})
		require.Equal(t, &timeout.Error{Name: "inner", Limit: 10 * ms, Err: errApp}, err)
	})
}

// The cause, returned by the callback, is no second error either.
func TestCauseReturnedByTheCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := timeout.Do(t.Context(), limit("x", 10*ms), func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		require.Equal(t, &timeout.Error{Name: "x", Limit: 10 * ms}, err)
		require.ErrorIs(t, err, timeout.ErrTimeout)
	})
}

// One *Timeout inside itself: the same name and limit, told apart by identity, and equal instants are the outer one's.
func TestSameTimeoutInsideItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := limit("x", 10*ms)
		for _, wait := range []time.Duration{0, ms} {
			var inner error
			_, err := timeout.Do(t.Context(), x, func(ctx context.Context) (int, error) {
				<-time.After(wait)
				_, inner = timeout.Do(ctx, x, obey)
				return 0, inner
			})
			require.Equal(t, errApp, inner, "the inner one did not fire")
			require.Equal(t, &timeout.Error{Name: "x", Limit: 10 * ms, Err: errApp}, err)
		}
	})
}

func TestCallbackSeesDeadlineAndCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := timeout.Do(t.Context(), limit("x", 10*ms), func(ctx context.Context) (int, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, 10*ms, deadline.Sub(began))
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			require.Equal(t, context.DeadlineExceeded, child.Err())
			require.Equal(t, &timeout.Error{Name: "x", Limit: 10 * ms}, context.Cause(child))
			return 0, child.Err()
		})
		require.ErrorIs(t, err, timeout.ErrTimeout)
	})
}

// The context ends when the callback has returned, panicked, or called runtime.Goexit, which go on unwinding.
func TestContextEndsWithTheCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, leave := range map[string]func(){"return": func() {}, "panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
			for _, touched := range []bool{false, true} {
				var seen context.Context
				var recovered any
				after := false
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					defer func() { recovered = recover() }()
					_, _ = timeout.Do(t.Context(), limit("", time.Hour), func(ctx context.Context) (int, error) {
						seen = ctx
						if touched {
							ctx.Done()
						}
						leave()
						return 0, nil
					})
					after = true
				}()
				<-gone
				require.Equal(t, context.Canceled, seen.Err(), name)
				require.Equal(t, name == "return", after, name)
				if name == "panic" {
					require.Equal(t, "boom", recovered)
				}
			}
		}
	})
}

// It is cooperative: a callback that ignores its context keeps the caller until it returns, so that whatever is held for
// the call is held for as long as the callback really runs.
func TestCallerWaitsForTheCallback(t *testing.T) { // C10
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := timeout.Do(t.Context(), limit("x", 100*ms), fail(250*ms))
		require.Equal(t, 250*ms, time.Since(began))
		require.Equal(t, &timeout.Error{Name: "x", Limit: 100 * ms, Err: errApp}, err)
	})
}

// Update is for calls that begin later.
func TestUpdateLeavesRunningCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := limit("old", 10*ms)
		_, err := timeout.Do(t.Context(), x, func(ctx context.Context) (int, error) {
			require.NoError(t, x.Update(timeout.Config{Name: "new", Limit: time.Hour}))
			return obey(ctx)
		})
		require.Equal(t, &timeout.Error{Name: "old", Limit: 10 * ms, Err: errApp}, err)
		began := time.Now()
		_, err = timeout.Do(t.Context(), x, obey)
		require.Equal(t, &timeout.Error{Name: "new", Limit: time.Hour, Err: errApp}, err)
		require.Equal(t, time.Hour, time.Since(began))
	})
}

func TestInjectedClock(t *testing.T) {
	fake := clockwork.NewFakeClock()
	x := timeout.MustNew(timeout.Config{Name: "x", Limit: time.Hour, Clock: fake})
	_, err := timeout.Do(t.Context(), x, func(ctx context.Context) (int, error) {
		fake.Advance(time.Hour - 1)
		require.NoError(t, ctx.Err())
		fake.Advance(1)
		return 0, ctx.Err()
	})
	require.Equal(t, &timeout.Error{Name: "x", Limit: time.Hour, Err: context.DeadlineExceeded}, err)
	_, err = timeout.Do(t.Context(), x, func(ctx context.Context) (int, error) {
		go fake.Advance(time.Hour)
		return obey(ctx)
	})
	require.Equal(t, &timeout.Error{Name: "x", Limit: time.Hour, Err: errApp}, err)
}

func TestUntouchedSuccessAllocatesOnce(t *testing.T) {
	x, n := limit("x", time.Hour), 0
	ctx := t.Context()
	require.Equal(t, 1.0, testing.AllocsPerRun(1000, func() {
		_, _ = timeout.Do(ctx, x, func(ctx context.Context) (int, error) {
			n++ // a capturing closure costs nothing either
			return n, ctx.Err()
		})
	}))
}
