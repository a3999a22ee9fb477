package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// Contexts, errors and clocks that the language allows and nobody expects.

// list is an error that == panics at, though its type is comparable.
type list struct{ of any }

func (list) Error() string { return "list" }

// listed is a refusal that == panics at.
type listed struct{ of any }

func (listed) Error() string  { return "listed" }
func (listed) Rejected() bool { return true }

// endless is a context that ends without a Done; its Err is what it is told.
type endless struct {
	context.Context
	err atomic.Pointer[error]
}

func newEndless() *endless { return &endless{Context: context.Background()} }

func (c *endless) end(err error) { c.err.Store(&err) }

func (c *endless) Err() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

// layered is a builder with each combination of timeouts.
func layered(each func(name string, b pipeline.Builder)) {
	for _, attempt := range []bool{false, true} {
		for _, total := range []bool{false, true} {
			b := pipeline.For("p")
			if attempt {
				b = b.AttemptTimeout(limitOf(time.Minute))
			}
			if total {
				b = b.Timeout(limitOf(time.Hour))
			}
			each(fmt.Sprintf("attempt %v, total %v", attempt, total), b)
		}
	}
}

func TestUncomparableCauseAndErr(t *testing.T) {
	layered(func(name string, b pipeline.Builder) {
		b = b.Retry(steady())
		ctx, cancel := context.WithCancelCause(t.Context())
		err := b.MustBuild().Run(ctx, func(ctx context.Context) error {
			cancel(list{[]error{errDown}})
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, context.Canceled, name)
		odd := newEndless()
		err = b.MustBuild().Run(odd, func(context.Context) error {
			odd.end(list{[]error{errDown}})
			return odd.Err()
		})
		require.ErrorContains(t, err, "list", name)

		odd = newEndless()
		err = b.With(&rule{acquire: func(context.Context) error {
			odd.end(list{[]error{errDown}})
			return odd.Err()
		}}).MustBuild().Run(odd, func(context.Context) error { return nil })
		require.ErrorContains(t, err, "list", name)
	})
}

func TestUncomparableRefusalIsMapped(t *testing.T) {
	for name, mapper := range map[string]func(error) error{
		"wrapped":   func(err error) error { return fmt.Errorf("mapped: %w", err) },
		"forgotten": func(error) error { return list{[]error{errDown}} },
		"itself":    func(err error) error { return err },
	} {
		p := pipeline.For("p").With(&rule{acquire: func(context.Context) error { return listed{[]error{errDown}} }}).
			OnRejected(func(_ context.Context, err error) error { return mapper(err) }).MustBuild()
		err := p.Run(t.Context(), func(context.Context) error { return nil })
		require.True(t, rejection.Is(err), name)
		_, ok := errors.AsType[listed](err)
		require.True(t, ok, name)
	}
}

// The same error handed back is known again, also where == would panic.
func TestUncomparableGuardErrorIsHandedBack(t *testing.T) {
	p := pipeline.For("p").With(&rule{acquire: func(context.Context) error { return list{[]error{errDown}} }}).
		OnRejected(func(_ context.Context, err error) error { return err }).MustBuild()
	err := p.Run(t.Context(), func(context.Context) error { return nil })
	require.Equal(t, list{[]error{errDown}}, err, "unchanged")
	require.False(t, rejection.Is(err))
}

// A context that says that it is over, and closes nothing: fn's failure is not retried, and both stay reachable. What wraps
// DeadlineExceeded is a deadline, with each combination of timeouts.
func TestErrWithoutDone(t *testing.T) {
	odd := errors.New("odd")
	for end, want := range map[error]pipeline.Disposition{
		context.Canceled: pipeline.Cancelled, odd: pipeline.Cancelled, context.DeadlineExceeded: pipeline.Expired,
		fmt.Errorf("rpc: %w", context.DeadlineExceeded): pipeline.Expired,
	} {
		layered(func(name string, b pipeline.Builder) {
			synctest.Test(t, func(t *testing.T) {
				verdict := map[pipeline.Disposition]leaf.Verdict{
					pipeline.Cancelled: leaf.CallerCancelled, pipeline.Expired: leaf.CallerExpired,
				}[want]
				ctx, g, runs := newEndless(), &rule{}, 0
				p := b.Retry(steady()).With(g).MustBuild()
				_, r, err := pipeline.DoDetailed(ctx, p, func(context.Context) (int, error) {
					runs++
					ctx.end(end)
					return 0, errDown
				})
				require.Equal(t, 1, runs)
				require.ErrorIs(t, err, errDown)
				require.ErrorIs(t, err, end)
				require.Equal(t, want, r.Disposition, "%s: %v", name, end)
				require.Equal(t, []leaf.Verdict{verdict}, g.verdicts(), "%s: %v", name, end)

				_, r, err = pipeline.DoDetailed(ctx, p, fails(0, nil))
				require.ErrorIs(t, err, end, "over already")
				require.Equal(t, want, r.Disposition, "%s: %v", name, end)
			})
		})
	}
}

// hasty has a deadline and no Done.
type hasty struct {
	context.Context
	at time.Time
}

func (c hasty) Deadline() (time.Time, bool) { return c.at, true }

// A deadline as far back as a time.Time can be is past, not centuries ahead.
func TestGivenDoesNotOverflow(t *testing.T) {
	fake := clockwork.NewFakeClock()
	g := &rule{}
	p := pipeline.For("p").With(g).AttemptTimeout(timeout.MustNew(timeout.Config{Limit: time.Hour, Clock: fake})).MustBuild()
	fake.Advance(time.Second)
	require.NoError(t, p.Run(hasty{Context: t.Context()}, func(context.Context) error { return nil }))
	require.Equal(t, time.Duration(1), g.told[0].Given)
}

// backwards is a clock that jumps.
type backwards struct {
	clockwork.Clock
	now atomic.Int64
}

func (c *backwards) Now() time.Time                  { return time.Unix(1e9, c.now.Load()) }
func (c *backwards) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
func (c *backwards) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// No duration that is told is negative where the clock jumps back, in fn, in a guard and in a hook.
func TestClockThatJumpsBackReportsNothingNegative(t *testing.T) {
	c := &backwards{Clock: clockwork.NewRealClock()}
	c.now.Store(int64(time.Hour))
	back := func() { c.now.Add(-int64(time.Minute)) }
	p := pipeline.For("p").Retry(retry.MustNew(retry.Config{Clock: c, Backoff: retry.Immediate, MaxElapsed: time.Minute})).
		With(&rule{acquire: func(context.Context) error { back(); return nil }}).
		Observe(func(_ context.Context, e pipeline.Event) {
			back()
			require.GreaterOrEqual(t, e.Took, time.Duration(0))
			require.GreaterOrEqual(t, e.Delay, time.Duration(0))
		}).MustBuild()
	_, r, err := pipeline.DoDetailed(t.Context(), p, func(context.Context) (int, error) { back(); return 0, errDown })
	require.ErrorIs(t, err, errDown)
	require.Len(t, r.History, 3)
	for _, a := range r.History {
		require.GreaterOrEqual(t, a.Began, time.Duration(0))
		require.GreaterOrEqual(t, a.Took, time.Duration(0))
	}
	require.GreaterOrEqual(t, r.Elapsed, time.Duration(0))
	require.GreaterOrEqual(t, r.Waited, time.Duration(0))
}

// A typed nil is an error as any other, and says nothing: no refusal, no wait, no kind.
func TestFnReturnsATypedNil(t *testing.T) {
	for _, typed := range []error{
		(*timeout.Error)(nil), (*retry.Error)(nil), (*pipeline.RanError)(nil), (*leaf.StoreError)(nil), (*breaker.OpenError)(nil),
		(*ratelimit.LimitedError)(nil), (*bulkhead.FullError)(nil), (*cooldown.Error)(nil),
	} {
		for _, given := range []error{typed, errors.Join(errDown, typed), fmt.Errorf("load: %w", typed)} {
			layered(func(name string, b pipeline.Builder) {
				p := b.Retry(retry.MustNew(retry.Config{Backoff: retry.Immediate})).
					Cooldown(cooldown.MustNew(cooldown.Config{})).Breaker(breaker.MustNew(breaker.Config{})).
					Observe(func(context.Context, pipeline.Event) {}).
					OnRejected(func(_ context.Context, err error) error { t.Error("it ran"); return nil }).MustBuild()
				_, r, err := pipeline.DoDetailed(t.Context(), p, func(context.Context) (int, error) { return 0, given })
				require.ErrorIs(t, err, typed, "%T, %s", typed, name)
				require.Equal(t, pipeline.Failed, r.Disposition)
				require.False(t, rejection.Is(err))
				_, asked := rejection.RetryAfter(err)
				require.False(t, asked)
				require.NotEmpty(t, err.Error())
			})
		}
	}
	e := (*pipeline.RanError)(nil)
	require.Equal(t, "pipeline: nil", e.Error())
	require.NoError(t, e.Unwrap())
	require.False(t, e.Rejected())
}
