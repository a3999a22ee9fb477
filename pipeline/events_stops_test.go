package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// Every reason for which a retry stops is told once, with the runs of fn and the wait that was asked for, before the call's end.
func TestEveryReasonIsTold(t *testing.T) {
	later := func(d time.Duration) error { return &later{wait: d} }
	with := func(change func(*retry.Config)) pipeline.Builder { return pipeline.For("p").Retry(steady(change)) }
	for _, test := range []struct {
		b        pipeline.Builder
		deadline time.Duration
		fn       func(context.Context) (int, error)
		opts     []pipeline.Option
		want     string
	}{
		{b: pipeline.For("p").Retry(steady()), fn: fails(9, errDown), want: "200ms retry_stopped #3 attempts_exhausted"},
		{b: with(func(c *retry.Config) { c.Budget = broke{} }), fn: fails(9, errDown), want: "0s retry_stopped #1 retry_budget_exhausted"},
		{b: pipeline.For("p").Retry(steady()), deadline: 50 * time.Millisecond, fn: fails(9, errDown),
			want: "0s retry_stopped #1 retry_delay_exceeds_deadline"},
		{b: pipeline.For("p").Retry(steady()), deadline: 10 * time.Second, fn: fails(9, later(15*time.Second)),
			want: "0s retry_stopped #1 retry_after_exceeds_deadline wait 15s"},
		{b: pipeline.For("p").Retry(steady()), fn: fails(9, later(time.Hour)),
			want: "0s retry_stopped #1 retry_after_exceeds_maximum_delay wait 1h0m0s"},
		{b: with(func(c *retry.Config) { c.MaxElapsed = 150 * time.Millisecond }), fn: fails(9, errDown),
			want: "100ms retry_stopped #2 max_elapsed_exceeded"},
		{b: pipeline.For("p").Retry(steady()).With(refusesFrom(2, &no{})), fn: fails(9, errDown), want: "100ms retry_stopped #1 refused"},
		{b: pipeline.For("p").Timeout(limitOf(150 * time.Millisecond)).Retry(steady()),
			fn: func(ctx context.Context) (int, error) {
				<-time.After(75 * time.Millisecond)
				<-ctx.Done()
				return 0, errDown
			},
			want: "150ms retry_stopped #1 context_ended"},
		{b: with(func(c *retry.Config) {
			c.Strict, c.RetryIf, c.Budget = true, func(error) bool { return true }, budget.MustNewRatio(budget.RatioConfig{})
		}), fn: fails(9, errDown), want: "0s retry_stopped unsafe_replay"},
		{b: pipeline.For("p").Retry(steady()), fn: fails(9, errDown), opts: []pipeline.Option{pipeline.Declare(retry.ReadOnly("r", 150*time.Millisecond))},
			want: "100ms retry_stopped #2 unsafe_replay"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if test.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.deadline)
				defer cancel()
			}
			heard := listen()
			_, err := pipeline.Do(ctx, test.b.Observe(heard.observe).MustBuild(), test.fn, test.opts...)
			require.Error(t, err)
			require.Equal(t, test.want, heard.lines[len(heard.lines)-2])
			require.Contains(t, heard.lines[len(heard.lines)-1], "call_finished")
		})
	}
}

// broke is a retry budget without a token.
type broke struct{}

func (broke) Deposit()                            {}
func (broke) Reserve() (budget.Reservation, bool) { return nil, false }

// A context that ends a backoff stops the retry then and there.
func TestAContextThatEndsABackoffIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := listen()
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
		_, err := pipeline.Do(ctx, pipeline.For("p").Retry(steady()).Observe(heard.observe).MustBuild(), fails(9, errDown))
		requireLines(t, []string{"0s call_started", "0s attempt_finished #1: down", "0s retry_scheduled #2 delay 100ms",
			"50ms retry_stopped #1 context_ended", "50ms call_finished took 50ms: …"}, heard.lines, err)
	})
}

// An attempt that its context kept from starting, after every guard had admitted it, is none: only the call's end is told.
func TestAnAttemptThatNeverRanIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := listen()
		ctx, cancel := context.WithCancel(t.Context())
		last := &rule{acquire: func(context.Context) error { cancel(); return nil }}
		_, err := pipeline.Do(ctx, pipeline.For("p").Bulkhead(last).Observe(heard.observe).MustBuild(), fails(0, nil))
		requireLines(t, []string{"0s call_started", "0s call_finished: …"}, heard.lines, err)
	})
}

// Settle in reverse order, then the attempt's event, then OnRetry and retry_scheduled; at the end the outer breaker, OnRejected, the
// end event, the fallback.
func TestWhenEventsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := listen()
		settles := func(name string) *rule {
			return &rule{settle: func(leaf.Outcome) error { heard.note("settle " + name); return nil }}
		}
		noted := steady(func(c *retry.Config) {
			c.MaxAttempts = 2
			c.OnRetry = func(context.Context, retry.Scheduled) { heard.note("OnRetry") }
		})
		p := pipeline.For("p").Retry(noted).Breaker(settles("breaker")).BreakerOutsideRetry().
			RateLimit(settles("limiter")).Bulkhead(settles("bulkhead")).Observe(heard.observe).MustBuild()
		_, err := pipeline.DoOr(t.Context(), p, fails(9, errDown), func(_ context.Context, err error) (int, error) {
			heard.note("fallback")
			return 0, err
		})
		requireLines(t, []string{
			"0s call_started", "0s settle bulkhead", "0s settle limiter", "0s attempt_finished #1: down",
			"0s OnRetry", "0s retry_scheduled #2 delay 100ms",
			"100ms settle bulkhead", "100ms settle limiter", "100ms attempt_finished #2: down",
			"100ms settle breaker", "100ms retry_stopped #2 attempts_exhausted", "100ms call_finished took 100ms: …", "100ms fallback",
		}, heard.lines, err)

		heard = listen()
		p = pipeline.For("p").Breaker(settles("breaker")).Bulkhead(refusesFrom(1, &no{})).
			OnRejected(func(_ context.Context, err error) error { heard.note("OnRejected"); return err }).Observe(heard.observe).MustBuild()
		_, err = pipeline.Do(t.Context(), p, fails(0, nil))
		requireLines(t, []string{
			"0s call_started", "0s settle breaker", "0s rejected bulkhead #1: no", "0s OnRejected", "0s call_finished: …",
		}, heard.lines, err)
	})
}
