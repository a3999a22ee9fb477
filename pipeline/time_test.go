package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

// Section 4, row "start": a ctx that is already done runs nothing and consumes nothing anywhere. C21.
func TestDoneContextConsumesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errX := errors.New("x")
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errX)
		b := breaker.MustNew(breaker.Config{Consecutive: 1})
		l := ratelimit.MustNew(ratelimit.Config{Rate: 1, Burst: 1})
		h := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 5})
		p := pipeline.For("p").Retry(steady(func(c *retry.Config) { c.Budget = tokens })).
			Breaker(b).RateLimit(l).Bulkhead(h).MustBuild()

		// Half-open with one probe: a failure, then the open time.
		_, err := leaf.Do(t.Context(), b, func(context.Context) (int, error) { return 0, errDown })
		require.Error(t, err)
		<-time.After(b.Config().OpenFor)
		require.Equal(t, breaker.HalfOpen, b.State())

		var runs int
		fn := func(context.Context) error { runs++; return nil }
		require.Zero(t, in(func() { err = p.Run(gone, fn) }))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errX)
		require.Zero(t, runs)
		s := b.Snapshot()
		require.Zero(t, s.Probes)
		require.Zero(t, s.Calls)
		require.Equal(t, 1.0, l.Tokens())
		require.Zero(t, h.InUse())
		require.Equal(t, 5, tokens.Balance())

		require.NoError(t, p.Run(t.Context(), fn))
		require.Equal(t, 1, runs)
		require.Equal(t, breaker.Closed, b.State())
	})
}

// Row "retry": whoever ends a wait, the last real failure stays reachable.
func TestCancelledBackoffKeepsTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shutdown := errors.New("shutdown")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(shutdown) })
		p := pipeline.For("p").Timeout(limitOf(2 * time.Hour)).
			Retry(retry.MustNew(retry.Config{Backoff: retry.Constant(time.Hour), MaxDelay: time.Hour, Jitter: retry.None})).MustBuild()
		var err error
		require.Equal(t, 3*time.Second, in(func() { err = p.Run(ctx, func(context.Context) error { return errDown }) }))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, shutdown)
		require.ErrorIs(t, err, errDown)
		require.False(t, rejection.Is(err))
	})
}

// Row "retry": no wait that does not fit, the total timeout's time included. C05.
func TestBackoffThatDoesNotFitTheTotalTimeoutIsNotSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("p").Timeout(limitOf(250 * time.Millisecond)).Retry(steady(func(c *retry.Config) { c.MaxAttempts = 9 })).MustBuild()
		runs := 0
		var err error
		took := in(func() { err = p.Run(t.Context(), func(context.Context) error { runs++; return errDown }) })
		require.Equal(t, 200*time.Millisecond, took)
		require.Equal(t, 3, runs)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errDown)
		stop, ok := errors.AsType[*retry.Error](err)
		require.True(t, ok)
		require.Equal(t, retry.RetryDelayExceedsDeadline, stop.Reason)
		require.NotErrorIs(t, err, timeout.ErrTimeout, "the limit never fired")
	})
}

// Row "rate limit, bulkhead": wait no longer than the time left; ended by ctx it is ctx's error, no refusal.
func TestWaitForASlotEndsWithTheTotalTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1, MaxWait: time.Hour})
		held, err := h.Acquire(t.Context())
		require.NoError(t, err)
		first := &rule{}
		p := pipeline.For("p").Timeout(timeout.MustNew(timeout.Config{Name: "all", Limit: time.Second})).Breaker(first).Bulkhead(h).MustBuild()
		require.Equal(t, time.Second, in(func() { err = p.Run(t.Context(), func(context.Context) error { return nil }) }))
		limit, ok := err.(*timeout.Error)
		require.True(t, ok, "%T", err)
		require.Equal(t, "all", limit.Name)
		require.Equal(t, time.Second, limit.Limit)
		require.False(t, rejection.Is(err))
		require.Equal(t, []leaf.Verdict{leaf.NotRun}, first.verdicts())
		require.NoError(t, held.Settle(t.Context(), leaf.Outcome{}))

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errDown)
		defer cancel()
		held, err = h.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Second, in(func() { err = p.Run(ctx, func(context.Context) error { return nil }) }))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errDown)
		require.NotErrorIs(t, err, timeout.ErrTimeout, "equal deadlines belong to the caller")
		require.NoError(t, held.Settle(t.Context(), leaf.Outcome{}))
	})
}

// Row "attempt timeout": min(limit, time left), and only the parent decides whether another attempt makes sense.
func TestAttemptTimeoutIsRetriedWhileTheParentLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &rule{}
		p := pipeline.For("p").Retry(steady()).Breaker(g).AttemptTimeout(timeout.MustNew(timeout.Config{Name: "each", Limit: time.Second})).MustBuild()
		var lefts []time.Duration
		hang := func(ctx context.Context) error {
			deadline, _ := ctx.Deadline()
			lefts = append(lefts, time.Until(deadline))
			<-ctx.Done()
			return errDown
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		var err error
		require.Equal(t, 1500*time.Millisecond, in(func() { err = p.Run(ctx, hang) }))
		require.Equal(t, []time.Duration{time.Second, 400 * time.Millisecond}, lefts)
		require.Equal(t, []leaf.Verdict{leaf.TimedOut, leaf.CallerExpired}, g.verdicts())
		require.Same(t, errDown, g.told[0].Err, "guards are told what fn returned")
		require.Equal(t, time.Second, g.told[0].Took)
		require.Equal(t, 1500*time.Millisecond, g.told[0].Given)
		require.Equal(t, 1500*time.Millisecond, g.told[1].Given, "of the call, not the attempt")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errDown)
	})
}

// C09: the outermost expired limit is the one named, and an expired parent stops inner retries.
func TestTotalTimeoutIsNamedAndStopsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errApp := errors.New("app")
		for name, c := range map[string]retry.Config{"wrapped": {}, "last": {ReturnLast: true}} {
			c.MaxAttempts, c.Backoff, c.Jitter = 5, retry.Constant(100*time.Millisecond), retry.None
			p := pipeline.For("p").Timeout(limitOf(2 * time.Second)).Retry(retry.MustNew(c)).
				AttemptTimeout(limitOf(1500 * time.Millisecond)).MustBuild()
			runs := 0
			var err error
			ctx := t.Context()
			took := in(func() {
				err = p.Run(ctx, func(ctx context.Context) error { runs++; <-ctx.Done(); return errApp })
			})
			require.Equal(t, 2*time.Second, took, name)
			limit, ok := errors.AsType[*timeout.Error](err)
			require.True(t, ok)
			require.Equal(t, 2*time.Second, limit.Limit)
			require.ErrorIs(t, err, errApp)
			require.Equal(t, 2, runs)
			<-time.After(8 * time.Second)
			require.Equal(t, 2, runs)
			require.NoError(t, ctx.Err())
		}
	})
}

// Who fired is decided by identity: the same Timeout inside itself, as total of an outer and an inner pipeline.
func TestTheSameTimeoutNestedInItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := limitOf(time.Second)
		inner, outer := &rule{}, &rule{}
		in := pipeline.For("inner").Breaker(inner).AttemptTimeout(limit).MustBuild()
		out := pipeline.For("outer").Breaker(outer).AttemptTimeout(limit).MustBuild()
		err := out.Run(t.Context(), func(ctx context.Context) error {
			<-time.After(300 * time.Millisecond)
			return in.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return errDown })
		})
		require.Equal(t, []leaf.Verdict{leaf.CallerExpired}, inner.verdicts())
		require.Equal(t, []leaf.Verdict{leaf.TimedOut}, outer.verdicts())
		require.ErrorIs(t, err, timeout.ErrTimeout)
		require.ErrorIs(t, err, errDown)
	})
}

// A hung downstream behind short deadlines still trips; one impatient caller does not open it for everyone.
func TestCallersDeadlineIsBlamedAfterHalfOfWhatItGave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.MustNew(breaker.Config{Consecutive: 3})
		slow := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1, MaxWait: time.Minute})
		p := pipeline.For("p").Breaker(b).Bulkhead(slow).MustBuild()
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		// Impatient: 40 of 50 ms go to the queue, fn gets 10.
		held, err := slow.Acquire(t.Context())
		require.NoError(t, err)
		time.AfterFunc(40*time.Millisecond, func() { _ = held.Settle(context.Background(), leaf.Outcome{}) })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, p.Run(ctx, hang), context.DeadlineExceeded)
		cancel()
		require.Zero(t, b.Snapshot().Failures)
		for range 3 { // hung: fn has all of it
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			require.ErrorIs(t, p.Run(ctx, hang), context.DeadlineExceeded)
			cancel()
		}
		require.Equal(t, breaker.Open, b.State())
	})
}

// Section 1, Outcome.Given: of the caller's deadline and the total timeout, the one that comes first. So a downstream that hangs behind
// a short total timeout trips, however long its callers would wait.
func TestGivenIsTheShorterOfTheCallersDeadlineAndTheTotalTimeout(t *testing.T) {
	const short, long = 60 * time.Millisecond, 10 * time.Second
	for name, c := range map[string]struct{ total, deadline time.Duration }{
		"the total timeout": {short, long}, "the caller's deadline": {long, short}, "both": {short, short}, "no deadline": {short, 0}, "no timeout": {0, short},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, b := &rule{}, breaker.MustNew(breaker.Config{Consecutive: 1})
				build := pipeline.For("p").Breaker(b).With(g)
				if c.total > 0 {
					build = build.Timeout(limitOf(c.total))
				}
				ctx := t.Context()
				if c.deadline > 0 {
					with, cancel := context.WithTimeout(ctx, c.deadline)
					defer cancel()
					ctx = with
				}
				require.ErrorIs(t, build.MustBuild().Run(ctx, hang), context.DeadlineExceeded)
				require.Equal(t, []leaf.Verdict{leaf.CallerExpired}, g.verdicts())
				require.Equal(t, short, g.told[0].Given)
				require.Equal(t, breaker.Open, b.State(), "fn had all of it: it is to blame")
			})
		})
	}
}

// A cooldown makes a later attempt wait, without consuming one; a first attempt is refused.
func TestCooldownIsWaitedForByALaterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(3 * time.Second)
		cool := &peeking{}
		cool.acquire = func(context.Context) error {
			if wait := time.Until(until); wait > 0 {
				return &no{wait: wait}
			}
			return nil
		}
		p := pipeline.For("p").Retry(steady(func(c *retry.Config) { c.MaxAttempts = 2 })).Cooldown(cool).MustBuild()
		require.True(t, rejection.Is(p.Run(t.Context(), func(context.Context) error { return nil })), "a first attempt is refused")

		until = time.Time{}
		runs := 0
		took := in(func() {
			v, err := pipeline.Do(t.Context(), p, func(context.Context) (int, error) {
				if runs++; runs == 1 {
					until = time.Now().Add(5 * time.Second) // closes after the peek would have seen it: found by Acquire
					return 0, errDown
				}
				return runs, nil
			})
			require.NoError(t, err)
			require.Equal(t, 2, v, "one retry was all it had")
		})
		require.Equal(t, 5*time.Second, took)
	})
}

// Section 3: no dead work is started, neither where an observer took the call's whole time and there is no guard to ask.
func TestACallWhoseTimeIsOverBeforeItsFirstRunRunsNothing(t *testing.T) {
	for name, with := range map[string]func(pipeline.Builder) pipeline.Builder{
		"the total alone": func(b pipeline.Builder) pipeline.Builder { return b },
		"a limit per run": func(b pipeline.Builder) pipeline.Builder { return b.AttemptTimeout(limitOf(time.Millisecond)) },
		"a retry":         func(b pipeline.Builder) pipeline.Builder { return b.Retry(steady()) },
		"a guard":         func(b pipeline.Builder) pipeline.Builder { return b.With(&rule{}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := with(pipeline.For("p").Timeout(limitOf(time.Second))).Observe(func(_ context.Context, e pipeline.Event) {
				if e.Kind == pipeline.CallStarted {
					<-time.After(2 * time.Second)
				}
			}).MustBuild()
			_, r, err := pipeline.DoDetailed(t.Context(), p, func(context.Context) (int, error) { return 1, nil })
			require.ErrorIs(t, err, timeout.ErrTimeout, name)
			require.Equal(t, pipeline.Expired, r.Disposition, name)
			require.Zero(t, r.Attempts, name)
		})
	}
}
