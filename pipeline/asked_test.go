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
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

// throttled asks for a wait, and is a failure.
type throttled struct{ wait time.Duration }

func (*throttled) Error() string                       { return "throttled" }
func (e *throttled) RetryAfter() (time.Duration, bool) { return e.wait, true }

// Section 2: a wait asked for by the other side is a lower bound, never shortened: whatever stops the call, its error and its report
// tell no less. Also where only the program's own RetryAfter knows of it.
func TestAnAskedWaitIsToldWhateverStopsTheCall(t *testing.T) {
	const asked = 10 * time.Second
	shortly := func() *breaker.Breaker { return breaker.MustNew(breaker.Config{Consecutive: 1, OpenFor: time.Second}) }
	full := func() *rule { return &rule{acquire: func(context.Context) error { return &no{wait: time.Second} }} }
	for name, c := range map[string]struct {
		with   func(cfg *retry.Config, b pipeline.Builder) pipeline.Builder
		left   time.Duration // until the caller's deadline; 0 = none
		reason retry.Reason
		told   time.Duration
	}{
		"a breaker that the failure opens for less": {func(_ *retry.Config, b pipeline.Builder) pipeline.Builder {
			return b.Breaker(shortly())
		}, 0, retry.Refused, asked},
		"the same, and a cooldown": {func(_ *retry.Config, b pipeline.Builder) pipeline.Builder {
			return b.Breaker(shortly()).Cooldown(cooldown.MustNew(cooldown.Config{}))
		}, 0, retry.Refused, asked},
		"a delay of our own that does not fit the deadline": {func(cfg *retry.Config, b pipeline.Builder) pipeline.Builder {
			cfg.Backoff = retry.Constant(15 * time.Second)
			return b
		}, 12 * time.Second, retry.RetryDelayExceedsDeadline, asked},
		"a delay of our own that does not fit MaxElapsed": {func(cfg *retry.Config, b pipeline.Builder) pipeline.Builder {
			cfg.Backoff, cfg.MaxElapsed = retry.Constant(15*time.Second), 12*time.Second
			return b
		}, 0, retry.MaxElapsedExceeded, asked},
		"it does not fit the deadline": {func(_ *retry.Config, b pipeline.Builder) pipeline.Builder { return b }, 5 * time.Second, retry.RetryAfterExceedsDeadline, asked},
		"it is beyond MaxRetryAfter": {func(cfg *retry.Config, b pipeline.Builder) pipeline.Builder {
			cfg.MaxRetryAfter = time.Second
			return b
		}, 0, retry.RetryAfterExceedsMaximumDelay, asked},
		"the attempts are used up":               {func(cfg *retry.Config, b pipeline.Builder) pipeline.Builder { cfg.MaxAttempts = 1; return b }, 0, retry.AttemptsExhausted, asked},
		"the budget is":                          {func(cfg *retry.Config, b pipeline.Builder) pipeline.Builder { cfg.Budget = spent(t); return b }, 0, retry.RetryBudgetExhausted, asked},
		"it was slept, and a guard refuses then": {func(_ *retry.Config, b pipeline.Builder) pipeline.Builder { return b.With(second(full())) }, 0, retry.Refused, time.Second},
	} {
		for _, own := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := retry.Config{Jitter: retry.None}
					failure := error(&throttled{asked})
					if own {
						failure = errors.New("throttled")
						cfg.RetryAfter = func(error) (time.Duration, bool) { return asked, true }
					}
					b := c.with(&cfg, pipeline.For("p"))
					p := b.Retry(retry.MustNew(cfg)).MustBuild()
					ctx := t.Context()
					if c.left > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, c.left)
						defer cancel()
					}
					_, report, err := pipeline.DoDetailed(ctx, p, func(context.Context) (int, error) { return 0, failure })
					require.Equal(t, c.reason, report.Reason)
					told, _ := rejection.RetryAfter(err)
					require.Equal(t, c.told, told)
					require.Equal(t, told, report.Wait)
				})
			})
		}
	}
}

// spent is a budget without a token.
func spent(t *testing.T) *budget.Tokens {
	b := budget.MustNewTokens(budget.TokenConfig{Capacity: 1})
	held, ok := b.Reserve()
	require.True(t, ok)
	held.Commit()
	return b
}

// second is a guard that lets the first attempt pass, and asks g for the others.
func second(g *rule) leaf.Guard {
	first := true
	return &rule{acquire: func(ctx context.Context) error {
		if first {
			first = false
			return nil
		}
		return g.acquire(ctx)
	}}
}

// An opt-in retries refusals: what is none, an error of a guard that is broken, is not repeated.
func TestAnOptInRetriesRefusalsAlone(t *testing.T) {
	broken := errors.New("no such tenant")
	for name, c := range map[string]struct {
		says error
		asks int
	}{"a broken guard": {broken, 1}, "a refusal": {&no{}, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asks := 0
				g := &rule{acquire: func(context.Context) error { asks++; return c.says }}
				for _, b := range []pipeline.Builder{
					pipeline.For("p").Retry(steady()).Bulkhead(g).RetryOnBulkheadFull(), pipeline.For("p").Retry(steady()).RateLimit(g).RetryOnRateLimited(),
				} {
					asks = 0
					require.ErrorIs(t, b.MustBuild().Run(t.Context(), func(context.Context) error { return nil }), c.says)
					require.Equal(t, c.asks, asks)
				}
			})
		})
	}
}

// Never retried: a rejection of any pipeline, also where the attempt's limit had passed when it came.
func TestANestedRefusalThatComesTooLateIsNotRetried(t *testing.T) {
	for name, refuse := range map[string]func(context.Context) error{
		"a refusal":                        func(context.Context) error { return &no{} },
		"one that came through a pipeline": func(context.Context) error { return &pipeline.RanError{Err: &no{}} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pipeline.For("p").Retry(steady()).AttemptTimeout(limitOf(time.Second)).MustBuild()
				runs := 0
				err := p.Run(t.Context(), func(ctx context.Context) error {
					runs++
					<-time.After(2 * time.Second)
					return refuse(ctx)
				})
				require.Error(t, err)
				require.False(t, rejection.Is(err), "it ran")
				require.Equal(t, 1, runs)
			})
		})
	}
}
