package pipeline_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Section 2, cooldown: a fleet of 429s must not cancel its own retries. 100 calls fail one after the other, each asks for 2 s and
// so moves the instant on: all of them wait for the last one's, and none of them loses its only retry over it.
func TestAFleetOf429sDoesNotCancelItsOwnRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cool := cooldown.MustNew(cooldown.Config{Name: "billing"})
		tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 100})
		p := pipeline.For("p").Cooldown(cool).
			Retry(steady(func(c *retry.Config) { c.MaxAttempts, c.Budget = 2, tokens })).MustBuild()
		began := time.Now()
		var wg sync.WaitGroup
		var again journal
		for i := range 100 {
			wg.Go(func() {
				runs := 0
				_, report, err := pipeline.DoDetailed(t.Context(), p, func(context.Context) (int, error) {
					if runs++; runs == 1 {
						<-time.After(time.Duration(i+1) * 10 * time.Millisecond)
						return 0, &later{wait: 2 * time.Second}
					}
					assert.Zero(t, cool.Wait())
					again.add(time.Since(began).String())
					return runs, nil
				})
				assert.NoError(t, err)
				assert.Equal(t, 2, report.Attempts)
			})
		}
		<-time.After(1500 * time.Millisecond) // a newcomer is refused meanwhile
		err := p.Run(t.Context(), func(context.Context) error { t.Error("refused"); return nil })
		require.Equal(t, &cooldown.Error{Name: "billing", Wait: 1500 * time.Millisecond}, err)
		require.True(t, rejection.Is(err))
		wg.Wait()
		require.Len(t, again.lines, 100)
		for _, at := range again.lines {
			require.Equal(t, "3s", at)
		}
		require.Zero(t, tokens.Balance(), "one token each")
		require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
	})
}

// A first attempt is refused, whatever retry there is: nothing has happened yet, and the caller may come back.
func TestAFirstAttemptIsRefusedByTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cool := cooldown.MustNew(cooldown.Config{})
		cool.Hint(t.Context(), 3*time.Second)
		tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 5})
		behind := &rule{}
		p := pipeline.For("p").Cooldown(cool).Breaker(behind).Retry(steady(func(c *retry.Config) { c.Budget = tokens })).MustBuild()
		var err error
		var report pipeline.Report
		require.Zero(t, in(func() { _, report, err = pipeline.DoDetailed(t.Context(), p, fails(0, nil)) }))
		require.Equal(t, &cooldown.Error{Wait: 3 * time.Second}, err)
		require.Equal(t, pipeline.Report{Disposition: pipeline.Rejected, Layer: "cooldown", Wait: 3 * time.Second}, report)
		require.Empty(t, behind.told)
		require.Equal(t, 5, tokens.Balance())
		<-time.After(3 * time.Second)
		require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
	})
}

// A later attempt waits within MaxRetryAfter and the deadline; else it is a deferral, told at once, that carries the wait. Found by
// the peek before the backoff, or by Acquire after it.
func TestACooldownThatDoesNotFitIsADeferral(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		cools    time.Duration
		deadline time.Duration
		total    time.Duration
		reason   retry.Reason // 0 = it fits
	}{
		"fits":                     {cools: 5 * s},
		"MaxRetryAfter, just":      {cools: 20 * s},
		"MaxRetryAfter":            {cools: 20*s + 1, reason: retry.RetryAfterExceedsMaximumDelay},
		"the deadline, just":       {cools: 5 * s, deadline: 6 * s},
		"the deadline":             {cools: 6 * s, deadline: 6 * s, reason: retry.RetryAfterExceedsDeadline},
		"the total timeout":        {cools: 6 * s, total: 6 * s, reason: retry.RetryAfterExceedsDeadline},
		"both: the longest of all": {cools: 30 * s, deadline: 6 * s, reason: retry.RetryAfterExceedsMaximumDelay},
	} {
		for _, peeked := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cool := cooldown.MustNew(cooldown.Config{})
					tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 5})
					b := pipeline.For("p").Cooldown(cool).Retry(steady(func(c *retry.Config) { c.MaxAttempts, c.Budget = 2, tokens }))
					if test.total > 0 {
						b = b.Timeout(limitOf(test.total))
					}
					ctx := t.Context()
					if test.deadline > 0 {
						with, cancel := context.WithTimeout(ctx, test.deadline)
						defer cancel()
						ctx = with
					}
					after := time.Duration(0)
					if !peeked { // somebody else's 429, in the middle of the backoff
						after = 50 * time.Millisecond
						time.AfterFunc(after, func() { cool.Hint(context.Background(), after+test.cools) })
					}
					runs := 0
					var err error
					var report pipeline.Report
					took := in(func() {
						_, report, err = pipeline.DoDetailed(ctx, b.MustBuild(), func(context.Context) (int, error) {
							if runs++; runs == 1 {
								if peeked {
									cool.Hint(ctx, test.cools)
								}
								return 0, errDown
							}
							return runs, nil
						})
					})
					if test.reason == 0 {
						require.NoError(t, err)
						require.Equal(t, 2, runs)
						require.Equal(t, 2*after+test.cools, took)
						require.Equal(t, 4, tokens.Balance())
						return
					}
					require.Equal(t, 1, runs)
					require.Equal(t, 2*after, took, "at once, or after the backoff that was under way")
					require.Equal(t, test.reason, report.Reason)
					require.Equal(t, pipeline.Deferred, report.Disposition)
					require.Equal(t, "cooldown", report.Layer)
					require.Equal(t, test.cools, report.Wait)
					require.Equal(t, 5, tokens.Balance(), "given back")
					require.ErrorIs(t, err, errDown)
					require.False(t, rejection.Is(err))
					wait, ok := rejection.RetryAfter(err)
					require.True(t, ok)
					require.Equal(t, test.cools, wait)
					if test.reason == retry.RetryAfterExceedsDeadline {
						require.ErrorIs(t, err, context.DeadlineExceeded)
					}
				})
			})
		}
	}
}

// Hints never close the way for longer than Max, whatever the other side asks for.
func TestACooldownNeverOutlastsItsMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cool := cooldown.MustNew(cooldown.Config{Max: time.Minute})
		p := pipeline.For("p").Cooldown(cool).MustBuild()
		require.Error(t, p.Run(t.Context(), func(context.Context) error { return &later{wait: 1000 * time.Hour} }))
		require.Equal(t, time.Minute, cool.Wait())
		require.ErrorIs(t, p.Run(t.Context(), func(context.Context) error { return nil }), cooldown.ErrCooling)
		<-time.After(time.Minute)
		require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
	})
}
