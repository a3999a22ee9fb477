package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

// strictly is a Strict retry, and the tokens that its retries cost.
func strictly(change ...func(*retry.Config)) (*retry.Retry, *budget.Tokens) {
	tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 9})
	change = append(change, func(c *retry.Config) {
		c.Strict, c.Budget, c.RetryIf = true, tokens, func(error) bool { return true }
	})
	return steady(change...), tokens
}

// stopped is err's *retry.Error.
func stopped(t *testing.T, err error) *retry.Error {
	t.Helper()
	stop, ok := errors.AsType[*retry.Error](err)
	require.True(t, ok, "%T: %v", err, err)
	return stop
}

// Section 3, options: Declare. The last one counts, whatever stands between them.
func TestTheLastDeclarationCounts(t *testing.T) {
	get, key, id := pipeline.Declare(retry.ReadOnly("get", time.Hour)), pipeline.Declare(retry.Idempotent("k", time.Hour)), pipeline.OperationID("o")
	unsafe, short := pipeline.Declare(retry.Unsafe), pipeline.Declare(retry.ReadOnly("get", 150*time.Millisecond))
	for name, test := range map[string]struct {
		opts []pipeline.Option
		runs int
	}{
		"none":                     {nil, 0},
		"another option":           {[]pipeline.Option{id}, 0},
		"read-only":                {[]pipeline.Option{get}, 3},
		"idempotent":               {[]pipeline.Option{key}, 3},
		"unsafe":                   {[]pipeline.Option{unsafe}, 0},
		"taken back":               {[]pipeline.Option{get, unsafe}, 0},
		"given after all":          {[]pipeline.Option{unsafe, key}, 3},
		"another option is last":   {[]pipeline.Option{get, id}, 3},
		"short, then long":         {[]pipeline.Option{short, get}, 3},
		"long, then short":         {[]pipeline.Option{get, id, short}, 2},
		"a name that says nothing": {[]pipeline.Option{get, pipeline.Declare(retry.ReadOnly("", time.Hour))}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := strictly()
				p := pipeline.For("p").Retry(r).MustBuild()
				runs := 0
				err := p.Run(t.Context(), func(context.Context) error { runs++; return errDown }, test.opts...)
				require.Equal(t, test.runs, runs)
				want := retry.UnsafeReplay
				if runs == 3 {
					want = retry.AttemptsExhausted
				}
				require.Equal(t, want, stopped(t, err).Reason)
			})
		})
	}
}

// Declare is about one call: Wrap's applies to each of its own, and to nobody else's.
func TestADeclarationIsOneCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := strictly()
		p := pipeline.For("p").Retry(r).MustBuild()
		declared := pipeline.Wrap(p, fails(2, errDown), pipeline.Declare(retry.ReadOnly("get", time.Hour)))
		v, err := declared(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, v)
		require.Equal(t, retry.UnsafeReplay, stopped(t, p.Run(t.Context(), func(context.Context) error { return nil })).Reason)
		// Nor is it carried by ctx into a call inside a declared one.
		inner := 0
		_, err = pipeline.Do(t.Context(), p, func(ctx context.Context) (int, error) {
			return 0, p.Run(ctx, func(context.Context) error { inner++; return nil })
		}, pipeline.Declare(retry.ReadOnly("get", time.Hour)))
		require.Equal(t, retry.UnsafeReplay, stopped(t, err).Reason)
		require.Zero(t, inner)
	})
}

// Section 2, Strict: refused before anything is sent, and before any guard is asked; the report and the events say so (F16).
func TestStrictRefusesBeforeAnyGuardIsAsked(t *testing.T) {
	for _, outside := range []bool{false, true} {
		var asked journal
		guard := func(name string) *rule { return &rule{name: name, log: &asked} }
		r, tokens := strictly()
		var events []pipeline.Event
		b := pipeline.For("p").Timeout(limitOf(time.Minute)).Retry(r).Cooldown(guard("cooldown")).Breaker(guard("breaker")).
			RateLimit(guard("ratelimit")).With(guard("extra")).Bulkhead(guard("bulkhead")).
			OnRejected(func(context.Context, error) error { t.Error("no guard refused"); return nil }).
			Observe(func(_ context.Context, e pipeline.Event) { events = append(events, e) })
		if outside {
			b = b.BreakerOutsideRetry()
		}
		_, report, err := pipeline.DoDetailed(t.Context(), b.MustBuild(), func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
		require.Empty(t, asked.lines)
		require.Equal(t, 9, tokens.Balance())
		require.False(t, rejection.Is(err))
		require.Equal(t, &retry.Error{Reason: retry.UnsafeReplay}, err)

		report.Elapsed = 0
		require.Equal(t, pipeline.Report{Disposition: pipeline.Failed, Reason: retry.UnsafeReplay}, report)
		require.Len(t, events, 3)
		require.Equal(t, pipeline.CallStarted, events[0].Kind)
		require.Equal(t, pipeline.RetryStopped, events[1].Kind)
		require.Equal(t, retry.UnsafeReplay, events[1].Reason)
		require.Zero(t, events[1].Attempt)
		require.Equal(t, pipeline.CallFinished, events[2].Kind)
		require.Same(t, err, events[2].Err)
	}
}

// Section 2: no retry starts after the declaration has expired, wherever it did so: in fn, in the backoff that would outlast
// it, or while a guard was waited for (F1). Guards that had admitted are told NotRun, and the token comes back.
func TestNoRetryStartsAfterTheDeclarationHasExpired(t *testing.T) {
	for name, test := range map[string]struct {
		fn, guard time.Duration // what the run, and the second admission, take
		took      time.Duration
		asked     int
	}{
		"in fn":                  {fn: time.Second + 1, took: time.Second + 1, asked: 1},
		"at its last instant":    {fn: 900 * time.Millisecond, took: 1900 * time.Millisecond, asked: 2}, // that one starts
		"in the backoff":         {fn: 900*time.Millisecond + 1, took: 900*time.Millisecond + 1, asked: 1},
		"in a guard":             {guard: 900*time.Millisecond + 1, took: time.Second + 1, asked: 2},
		"in a guard, just still": {guard: 900 * time.Millisecond, took: time.Second, asked: 2}, // that one starts
	} {
		for _, strict := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, tokens := strictly(func(c *retry.Config) { c.MaxAttempts = 2 })
					if !strict {
						cfg := r.Config()
						cfg.Strict = false
						r = retry.MustNew(cfg)
					}
					asked, runs := 0, 0
					first := &rule{}
					slow := &rule{acquire: func(context.Context) error {
						if asked++; asked == 2 {
							<-time.After(test.guard)
						}
						return nil
					}}
					p := pipeline.For("p").Retry(r).Breaker(first).Bulkhead(slow).MustBuild()
					var err error
					var report pipeline.Report
					took := in(func() {
						_, report, err = pipeline.DoDetailed(t.Context(), p, func(context.Context) (int, error) {
							runs++
							<-time.After(test.fn)
							return 0, errDown
						}, pipeline.Declare(retry.ReadOnly("x", time.Second)))
					})
					require.Equal(t, test.took, took)
					require.Equal(t, test.asked, asked)
					require.ErrorIs(t, err, errDown)
					starts := name == "at its last instant" || name == "in a guard, just still"
					if starts {
						require.Equal(t, 2, runs)
						require.Equal(t, retry.AttemptsExhausted, report.Reason)
						require.Equal(t, 8, tokens.Balance())
						return
					}
					require.Equal(t, 1, runs)
					require.Equal(t, 9, tokens.Balance(), "what is not sent costs nothing")
					require.Equal(t, retry.UnsafeReplay, stopped(t, err).Reason)
					require.Equal(t, retry.UnsafeReplay, report.Reason)
					require.Equal(t, 1, report.Attempts)
					require.Equal(t, pipeline.Failed, report.Disposition)
					want := []leaf.Verdict{leaf.Returned, leaf.NotRun}[:asked]
					require.Equal(t, want, first.verdicts())
					require.Equal(t, want, slow.verdicts())
				})
			})
		}
	}
}

// A first attempt may start however long its guards took: the declaration is about repeating.
func TestTheFirstAttemptNeedsNoValidDeclaration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := strictly()
		slow := &rule{acquire: func(context.Context) error { <-time.After(time.Hour); return nil }}
		v, err := pipeline.Do(t.Context(), pipeline.For("p").Retry(r).Bulkhead(slow).MustBuild(), fails(0, nil),
			pipeline.Declare(retry.ReadOnly("x", time.Second)))
		require.NoError(t, err)
		require.Equal(t, 1, v)
	})
}

// Section 2: a wait that was asked for and outlasts the declaration is not slept; the wait is told.
func TestAnAskedWaitThatOutlastsTheDeclarationIsNotSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("p").Retry(steady()).MustBuild()
		var err error
		require.Zero(t, in(func() {
			_, err = pipeline.Do(t.Context(), p, fails(9, &later{wait: 5 * time.Second}), pipeline.Declare(retry.ReadOnly("x", time.Second)))
		}))
		stop := stopped(t, err)
		require.Equal(t, retry.UnsafeReplay, stop.Reason)
		wait, ok := rejection.RetryAfter(err)
		require.True(t, ok)
		require.Equal(t, 5*time.Second, wait)
	})
}
