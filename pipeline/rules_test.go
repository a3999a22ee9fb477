package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

// Section 3, row 1: cooldown, breaker, rate limit, extra guards, bulkhead, attempt timeout, fn: per attempt, in this order.
// Row 11: settle in reverse order.
func TestLayersPerAttemptInOrderAndSettledInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		p := pipeline.For("p").Retry(steady()).
			Bulkhead(&rule{name: "bulkhead", log: &j}).
			With(&rule{name: "first", log: &j}).
			RateLimit(&rule{name: "limit", log: &j}).
			Cooldown(&rule{name: "cooldown", log: &j}).
			With(&rule{name: "second", log: &j}).
			Breaker(&rule{name: "breaker", log: &j}).
			MustBuild()
		runs := 0
		require.NoError(t, p.Run(t.Context(), func(context.Context) error {
			j.add("fn")
			if runs++; runs == 1 {
				return errDown
			}
			return nil
		}))
		attempt := []string{
			"acquire cooldown", "acquire breaker", "acquire limit", "acquire first", "acquire second", "acquire bulkhead", "fn",
			"settle bulkhead returned", "settle second returned", "settle first returned", "settle limit returned",
			"settle breaker returned", "settle cooldown returned",
		}
		require.Equal(t, append(attempt, attempt...), j.lines)
	})
}

// Row 2: a guard that refuses settles the guards before it with NotRun.
func TestRefusalSettlesTheGuardsBeforeItWithNotRun(t *testing.T) {
	var j journal
	full := &no{}
	p := pipeline.For("p").
		Breaker(&rule{name: "breaker", log: &j}).RateLimit(&rule{name: "limit", log: &j}).
		Bulkhead(&rule{name: "bulkhead", log: &j, acquire: func(context.Context) error { return full }}).MustBuild()
	err := p.Run(t.Context(), func(context.Context) error { t.Fatal("must not run"); return nil })
	require.Same(t, full, err)
	require.Equal(t, []string{
		"acquire breaker", "acquire limit", "acquire bulkhead", "settle limit not_run", "settle breaker not_run",
	}, j.lines)
}

// Row 2: after the last guard ctx is checked once more: dead work is not started.
func TestContextIsCheckedAfterTheLastGuard(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	g := &rule{name: "last", acquire: func(context.Context) error { cancel(gone); return nil }}
	p := pipeline.For("p").Bulkhead(g).MustBuild()
	err := p.Run(ctx, func(context.Context) error { t.Fatal("must not run"); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, gone)
	require.False(t, rejection.Is(err))
	require.Equal(t, []leaf.Verdict{leaf.NotRun}, g.verdicts())
}

// Row 3: retry stops on an open breaker and a store failure, always; on a full bulkhead or a rate limit unless opted in.
func TestRetryStopsOnRefusals(t *testing.T) {
	for name, build := range map[string]func(pipeline.Builder, leaf.Guard) pipeline.Builder{
		"breaker":  pipeline.Builder.Breaker,
		"limit":    pipeline.Builder.RateLimit,
		"bulkhead": pipeline.Builder.Bulkhead,
		"extra":    func(b pipeline.Builder, g leaf.Guard) pipeline.Builder { return b.With(g) },
		"cooldown": pipeline.Builder.Cooldown,
	} {
		for kind, refusal := range map[string]error{
			"refusal": &no{}, "store failure": &leaf.StoreError{Op: leaf.OpAdmit, Name: "s", Err: errDown},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					asked := 0
					g := &rule{acquire: func(context.Context) error { asked++; return refusal }}
					p := build(pipeline.For("p").Retry(steady()), g).MustBuild()
					var err error
					require.Zero(t, in(func() { err = p.Run(t.Context(), func(context.Context) error { return nil }) }))
					require.Equal(t, refusal, err, "fn never ran: unchanged")
					require.Equal(t, 1, asked)
				})
			})
		}
	}
}

// Row 3: breaker and cooldown are peeked before the backoff is slept: the caller is told at once.
func TestBreakerIsPeekedBeforeTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := &no{wait: time.Hour}
		g := &peeking{peek: func() error { return open }}
		p := pipeline.For("p").Retry(steady()).Breaker(g).MustBuild()
		var err error
		require.Zero(t, in(func() { err = p.Run(t.Context(), func(context.Context) error { return errDown }) }))
		stop, ok := errors.AsType[*retry.Error](err)
		require.True(t, ok)
		require.Equal(t, retry.Refused, stop.Reason)
		require.Equal(t, 1, stop.Attempts)
		require.ErrorIs(t, err, errDown)
		require.ErrorIs(t, err, open)
		require.False(t, rejection.Is(err), "an attempt ran")
		wait, ok := rejection.RetryAfter(err)
		require.True(t, ok)
		require.Equal(t, time.Hour, wait)
	})
}

// A real breaker that this call's own failure trips ends the loop at once.
func TestOwnFailureThatTripsTheBreakerEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.MustNew(breaker.Config{Consecutive: 2})
		runs := 0
		p := pipeline.For("p").Retry(steady(func(c *retry.Config) { c.MaxAttempts = 5 })).Breaker(b).MustBuild()
		took := in(func() {
			err := p.Run(t.Context(), func(context.Context) error { runs++; return errDown })
			require.ErrorIs(t, err, breaker.ErrOpen)
			require.ErrorIs(t, err, errDown)
			require.False(t, rejection.Is(err))
		})
		require.Equal(t, 2, runs)
		require.Equal(t, 100*time.Millisecond, took)
	})
}

// Row 4: with the opt-in, refused tries count against MaxAttempts; a rate limit's wait is the lower bound of the delay.
func TestOptInRetriesRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		limit := &rule{acquire: func(context.Context) error { asked++; return &no{wait: 3 * time.Second} }}
		p := pipeline.For("p").Retry(steady()).RateLimit(limit).RetryOnRateLimited().MustBuild()
		var err error
		require.Equal(t, 6*time.Second, in(func() { err = p.Run(t.Context(), func(context.Context) error { return nil }) }))
		require.Equal(t, 3, asked)
		require.True(t, rejection.Is(err), "fn never ran")

		asked = 0
		full := &rule{acquire: func(context.Context) error {
			if asked++; asked < 3 {
				return &no{}
			}
			return nil
		}}
		p = pipeline.For("p").Retry(steady()).Bulkhead(full).RetryOnBulkheadFull().MustBuild()
		require.Equal(t, 200*time.Millisecond, in(func() { err = p.Run(t.Context(), func(context.Context) error { return nil }) }))
		require.NoError(t, err)
	})
}

// Row 3: a store failure stops the retry also where the layer's refusals are retried.
func TestStoreFailureIsNotRetriedByAnOptIn(t *testing.T) {
	asked := 0
	down := &leaf.StoreError{Op: leaf.OpAdmit, Name: "s", Err: errDown}
	g := &rule{acquire: func(context.Context) error { asked++; return down }}
	p := pipeline.For("p").Retry(steady()).RateLimit(g).RetryOnRateLimited().MustBuild()
	require.Same(t, down, p.Run(t.Context(), func(context.Context) error { return nil }))
	require.Equal(t, 1, asked)
}

// Row 5: nothing that came out of a pipeline nested in fn is retried: retries of retries multiply.
func TestNestedStopsAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, inner := range map[string]error{
			"refusal":     &no{},
			"wrapped":     fmt.Errorf("inner: %w", &no{}),
			"retry.Error": &retry.Error{Reason: retry.AttemptsExhausted, Attempts: 3, Last: errDown},
		} {
			runs := 0
			p := pipeline.For("p").Retry(steady()).MustBuild()
			err := p.Run(t.Context(), func(context.Context) error { runs++; return inner })
			require.Equal(t, 1, runs, name)
			require.ErrorIs(t, err, inner, name)
			require.False(t, rejection.Is(err), name)
		}
	})
}

// Row 6: one outcome per call, what the retry loop returns.
func TestBreakerOutsideJudgesOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &rule{}
		p := pipeline.For("p").Retry(steady()).Breaker(g).BreakerOutsideRetry().MustBuild()
		v, err := pipeline.Do(t.Context(), p, fails(2, errDown))
		require.NoError(t, err)
		require.Equal(t, 3, v)
		require.Equal(t, []leaf.Verdict{leaf.Returned}, g.verdicts())
		require.NoError(t, g.told[0].Err)

		_, err = pipeline.Do(t.Context(), p, fails(9, errDown))
		require.Len(t, g.told, 2)
		require.Equal(t, err, g.told[1].Err, "what the loop returns")
		stop, ok := errors.AsType[*retry.Error](g.told[1].Err)
		require.True(t, ok)
		require.Equal(t, retry.AttemptsExhausted, stop.Reason)
	})
}

// Row 7: fn never ran: an outside breaker gets NotRun.
func TestBreakerOutsideGetsNotRunWhenFnNeverRan(t *testing.T) {
	g := &rule{}
	p := pipeline.For("p").Retry(steady()).Breaker(g).BreakerOutsideRetry().
		Bulkhead(&rule{acquire: func(context.Context) error { return &no{} }}).MustBuild()
	require.True(t, rejection.Is(p.Run(t.Context(), func(context.Context) error { return nil })))
	require.Equal(t, []leaf.Verdict{leaf.NotRun}, g.verdicts())
}

// Row 8: fn ran and a later attempt was refused: retry.Error{refused, Last, Stop}, no rejection, OnRejected not called.
func TestRefusalAfterARunIsNoRejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &no{wait: time.Minute}
		asked := 0
		g := &rule{acquire: func(context.Context) error {
			if asked++; asked == 2 {
				return full
			}
			return nil
		}}
		p := pipeline.For("p").Retry(steady()).Bulkhead(g).
			OnRejected(func(context.Context, error) error { t.Fatal("it may have charged"); return nil }).MustBuild()
		err := p.Run(t.Context(), func(context.Context) error { return errDown })
		stop, ok := errors.AsType[*retry.Error](err)
		require.True(t, ok)
		require.Equal(t, retry.Refused, stop.Reason)
		require.Same(t, errDown, stop.Last)
		require.Same(t, full, stop.Stop)
		require.False(t, rejection.Is(err))
		wait, ok := rejection.RetryAfter(err)
		require.True(t, ok)
		require.Equal(t, time.Minute, wait)
	})
}

// Row 8: fn itself returned somebody's rejection: RanError, whatever the error's shape.
func TestRejectionOutOfFnIsARanError(t *testing.T) {
	inner := &no{wait: time.Second}
	for name, r := range map[string]*retry.Retry{"without retry": nil, "with": steady(), "last": steady(func(c *retry.Config) { c.ReturnLast = true })} {
		g := &rule{}
		b := pipeline.For("p").Breaker(g).OnRejected(func(context.Context, error) error { t.Fatal("it ran"); return nil })
		if r != nil {
			b = b.Retry(r)
		}
		err := b.MustBuild().Run(t.Context(), func(context.Context) error { return inner })
		ran, ok := err.(*pipeline.RanError)
		require.True(t, ok, "%s: %T", name, err)
		require.Same(t, inner, ran.Err)
		require.False(t, rejection.Is(err))
		require.ErrorIs(t, err, inner)
		wait, ok := rejection.RetryAfter(err)
		require.True(t, ok)
		require.Equal(t, time.Second, wait)
		require.Equal(t, []leaf.Verdict{leaf.Ignored}, g.verdicts())
		require.Same(t, inner, g.told[0].Err)
	}
}

// Row 10: a success is never discarded: not for a late deadline, not for a store that could not record it.
func TestSuccessIsNeverDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g := &rule{settle: func(leaf.Outcome) error { return &leaf.StoreError{Op: leaf.OpRecord, Err: errDown} }}
		p := pipeline.For("p").Timeout(limitOf(700 * time.Millisecond)).AttemptTimeout(limitOf(500 * time.Millisecond)).
			Retry(steady()).Breaker(g).MustBuild()
		v, err := pipeline.Do(ctx, p, func(context.Context) (string, error) {
			<-time.After(2 * time.Second)
			return "done", nil
		})
		require.NoError(t, err)
		require.Equal(t, "done", v)
		require.Equal(t, []leaf.Verdict{leaf.Returned}, g.verdicts())
	})
}

// Row 11: slots are free before anything slow: no guard is held during a backoff.
func TestNothingIsHeldDuringABackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		r := retry.MustNew(retry.Config{Backoff: retry.Constant(time.Second), Jitter: retry.None, OnRetry: func(context.Context, retry.Scheduled) {
			j.add("sleep")
		}})
		p := pipeline.For("p").Retry(r).Bulkhead(&rule{name: "bulkhead", log: &j}).MustBuild()
		_, err := pipeline.Do(t.Context(), p, fails(1, errDown))
		require.NoError(t, err)
		require.Equal(t, []string{
			"acquire bulkhead", "settle bulkhead returned", "sleep", "acquire bulkhead", "settle bulkhead returned",
		}, j.lines)
	})
}

// The retry budget pays for retries that are sent, not for those that a peek stopped.
func TestPeekedRetryCostsNoToken(t *testing.T) {
	tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 3})
	r := steady(func(c *retry.Config) { c.Budget = tokens })
	p := pipeline.For("p").Retry(r).Breaker(&peeking{peek: func() error { return &no{} }}).MustBuild()
	require.Error(t, p.Run(t.Context(), func(context.Context) error { return errDown }))
	require.Equal(t, 3, tokens.Balance())
}

// An error's Judge speaks to the guards; the retry sees the error.
func TestJudgeSpeaksToTheGuardsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &rule{}
		p := pipeline.For("p").Retry(steady()).Breaker(g).MustBuild()
		v, err := pipeline.Do(t.Context(), p, fails(1, &later{wait: time.Second}))
		require.NoError(t, err)
		require.Equal(t, 2, v)
		require.Equal(t, []leaf.Verdict{leaf.Ignored, leaf.Returned}, g.verdicts())
	})
}
