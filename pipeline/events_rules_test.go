package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// refusesFrom is a guard that refuses from its nth question on.
func refusesFrom(n int, err error) *rule {
	asked := 0
	return &rule{acquire: func(context.Context) error {
		if asked++; asked >= n {
			return err
		}
		return nil
	}}
}

// Each rule of section 3 that decides something leaves an event: the rule, a pipeline that it decides on, what is told.
func TestEveryRuleThatDecidesLeavesAnEvent(t *testing.T) {
	full := &no{wait: time.Second}
	closed := &leaf.StoreError{Op: leaf.OpAdmit, Name: "s", Err: errors.New("gone"), NotExecuted: true}
	for _, test := range []struct {
		rule string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		b    pipeline.Builder
		fn   func(context.Context) (int, error)
		want []string
	}{
		{rule: "a context that is done runs nothing",
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx, cancel
			},
			b: pipeline.For("p").Retry(steady()), fn: fails(0, nil),
			want: []string{"0s call_started", "0s call_finished: context canceled"}},
		{rule: "a guard that refuses ends the call; there was nothing to retry",
			b: pipeline.For("p").Retry(steady()).RateLimit(refusesFrom(1, full)), fn: fails(0, nil),
			want: []string{"0s call_started", "0s rejected ratelimit #1 wait 1s: no", "0s call_finished: no"}},
		{rule: "a breaker outside the retry that refuses",
			b: pipeline.For("p").Retry(steady()).Breaker(refusesFrom(1, full)).BreakerOutsideRetry(), fn: fails(0, nil),
			want: []string{"0s call_started", "0s rejected breaker #1 wait 1s: no", "0s call_finished: no"}},
		{rule: "a guard that refuses a later attempt stops the retry, after the backoff where it is not peeked",
			b: pipeline.For("p").Retry(steady()).Bulkhead(refusesFrom(2, full)), fn: fails(9, errDown),
			want: []string{"0s call_started", "0s attempt_finished #1: down", "0s retry_scheduled #2 delay 100ms",
				"100ms rejected bulkhead #2 wait 1s: no", "100ms retry_stopped #1 refused wait 1s",
				"100ms call_finished took 100ms: …"}},
		{rule: "a breaker is peeked before the backoff is slept",
			b: pipeline.For("p").Retry(steady()).Breaker(&peeking{peek: func() error { return full }}), fn: fails(9, errDown),
			want: []string{"0s call_started", "0s attempt_finished #1: down", "0s rejected breaker #2 wait 1s: no",
				"0s retry_stopped #1 refused wait 1s", "0s call_finished: …"}},
		{rule: "a cooldown's wait is the lower bound of a later attempt's delay",
			b: pipeline.For("p").Retry(steady()).Cooldown(&peeking{peek: func() error { return full }}), fn: fails(1, errDown),
			want: []string{"0s call_started", "0s attempt_finished #1: down", "0s retry_scheduled #2 delay 1s wait 1s",
				"1s attempt_finished #2", "1s call_finished took 1s"}},
		{rule: "a cooldown's wait that does not fit is a deferral",
			b: pipeline.For("p").Retry(steady()).Cooldown(&peeking{peek: func() error { return &no{wait: time.Hour} }}), fn: fails(9, errDown),
			want: []string{"0s call_started", "0s attempt_finished #1: down", "0s rejected cooldown #2 wait 1h0m0s: no",
				"0s retry_stopped #1 retry_after_exceeds_maximum_delay wait 1h0m0s", "0s call_finished: …"}},
		{rule: "a cooldown that has moved on while a backoff was slept is waited for again: one more retry_scheduled, of the same attempt",
			b:  pipeline.For("p").Retry(steady()).Cooldown(&peeking{rule: rule{acquire: movedOn(2, full)}}),
			fn: fails(1, errDown),
			want: []string{"0s call_started", "0s attempt_finished #1: down", "0s retry_scheduled #2 delay 100ms",
				"100ms retry_scheduled #2 delay 1s wait 1s", "1.1s attempt_finished #2", "1.1s call_finished took 1.1s"}},
		{rule: "a store failure stops the retry, opted in or not",
			b: pipeline.For("p").Retry(steady()).RateLimit(refusesFrom(2, closed)).RetryOnRateLimited(), fn: fails(9, errDown),
			want: []string{"0s call_started", "0s attempt_finished #1: down", "0s retry_scheduled #2 delay 100ms",
				"100ms rejected ratelimit #2: " + closed.Error(), "100ms retry_stopped #1 refused", "100ms call_finished took 100ms: …"}},
		{rule: "with the opt-in refused tries count against MaxAttempts, and the limiter's wait is the lower bound",
			b: pipeline.For("p").Retry(steady()).RateLimit(refusesFrom(1, full)).RetryOnRateLimited(), fn: fails(0, nil),
			want: []string{"0s call_started",
				"0s rejected ratelimit #1 wait 1s: no", "0s retry_scheduled #1 delay 1s wait 1s",
				"1s rejected ratelimit #1 wait 1s: no", "1s retry_scheduled #1 delay 1s wait 1s",
				"2s rejected ratelimit #1 wait 1s: no", "2s retry_stopped attempts_exhausted wait 1s", "2s call_finished took 2s: no"}},
		{rule: "with the opt-in a full bulkhead is asked again after the backoff, and may let the call in",
			b: pipeline.For("p").Retry(steady()).Bulkhead(&rule{acquire: movedOn(1, &no{})}).RetryOnBulkheadFull(), fn: fails(0, nil),
			want: []string{"0s call_started", "0s rejected bulkhead #1: no", "0s retry_scheduled #1 delay 100ms",
				"100ms attempt_finished #1", "100ms call_finished took 100ms"}},
		{rule: "with the opt-in a bulkhead that stays full uses up the attempts; fn had run, so that the reason is the refusal",
			b: pipeline.For("p").Retry(steady()).Bulkhead(refusesFrom(2, &no{})).RetryOnBulkheadFull(), fn: fails(9, errDown),
			want: []string{"0s call_started", "0s attempt_finished #1: down", "0s retry_scheduled #2 delay 100ms",
				"100ms rejected bulkhead #2: no", "100ms retry_scheduled #2 delay 100ms",
				"200ms rejected bulkhead #2: no", "200ms retry_stopped #1 refused", "200ms call_finished took 200ms: …"}},
		{rule: "unlimited attempts that nothing bounds are not begun",
			b:  pipeline.For("p").Retry(steady(func(c *retry.Config) { c.MaxAttempts = retry.Unlimited })).Breaker(refusesFrom(1, full)),
			fn: fails(0, nil), want: []string{"0s call_started", "0s call_finished: …"}},
		{rule: "a refusal that comes out of fn is not retried, and to this caller it is none",
			b: pipeline.For("p").Retry(steady()), fn: fails(9, full),
			want: []string{"0s call_started", "0s attempt_finished #1: no",
				"0s call_finished: pipeline: the callback ran, and returned: no"}},
		{rule: "a failure that is never retried comes back unchanged",
			b: pipeline.For("p").Retry(steady()), fn: fails(9, retry.Permanent(errDown)),
			want: []string{"0s call_started", "0s attempt_finished #1: down", "0s call_finished: down"}},
		{rule: "OnRejected maps what the caller gets; the guard's own error is told with the guard",
			b: pipeline.For("p").Bulkhead(refusesFrom(1, full)).OnRejected(func(context.Context, error) error { return errDown }), fn: fails(0, nil),
			want: []string{"0s call_started", "0s rejected bulkhead #1 wait 1s: no", "0s call_finished: down"}},
		{rule: "an attempt timeout that fired is named, and retried",
			b: pipeline.For("p").Retry(steady()).AttemptTimeout(limitOf(time.Second)), fn: hangs(1),
			want: []string{"0s call_started", "1s attempt_finished #1 took 1s: timeout: limit of 1s reached",
				"1s retry_scheduled #2 delay 100ms", "1.1s attempt_finished #2", "1.1s call_finished took 1.1s"}},
		{rule: "a success is never discarded, however late",
			b:    pipeline.For("p").AttemptTimeout(limitOf(time.Second)),
			fn:   func(ctx context.Context) (int, error) { <-time.After(time.Minute); return 1, nil },
			want: []string{"0s call_started", "1m0s attempt_finished #1 took 1m0s", "1m0s call_finished took 1m0s"}},
		{rule: "the total timeout ends the call", b: pipeline.For("p").Timeout(limitOf(time.Second)).Retry(steady()), fn: hangs(9),
			want: []string{"0s call_started", "1s attempt_finished #1 took 1s: context deadline exceeded",
				"1s retry_stopped #1 context_ended", "1s call_finished took 1s: …"}},
		{rule: "a context that ends in a guard's wait is no refusal",
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
			b: pipeline.For("p").Bulkhead(&rule{acquire: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}), fn: fails(0, nil),
			want: []string{"0s call_started", "1s call_finished took 1s: context deadline exceeded"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.ctx != nil {
					var cancel context.CancelFunc
					ctx, cancel = test.ctx(ctx)
					defer cancel()
				}
				heard := listen()
				_, err := pipeline.Do(ctx, test.b.Observe(heard.observe).MustBuild(), test.fn)
				requireLines(t, test.want, heard.lines, err)
			})
		})
	}
}

// A fallback comes after the last event and leaves none, whatever it makes of the error: call_finished tells of the call alone.
func TestAFallbackLeavesNoEvent(t *testing.T) {
	for name, declines := range map[string]error{"it helps": nil, "it declines": errDown} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heard := listen()
				p := pipeline.For("p").Observe(heard.observe).MustBuild()
				_, err := pipeline.DoOr(t.Context(), p, fails(9, errDown), func(context.Context, error) (int, error) {
					heard.note("fallback")
					<-time.After(time.Second)
					return 7, declines
				})
				requireLines(t, []string{"0s call_started", "0s attempt_finished #1: down", "0s call_finished: down", "0s fallback"}, heard.lines, declines)
				if !errors.Is(err, declines) {
					t.Errorf("%v, want %v", err, declines)
				}
			})
		})
	}
}

// movedOn refuses the nth question alone.
func movedOn(n int, err error) func(context.Context) error {
	asked := 0
	return func(context.Context) error {
		if asked++; asked == n {
			return err
		}
		return nil
	}
}

// hangs is a callback that waits for its context's end n times.
func hangs(n int) func(context.Context) (int, error) {
	runs := 0
	return func(ctx context.Context) (int, error) {
		if runs++; runs > n {
			return runs, nil
		}
		<-ctx.Done()
		return 0, ctx.Err()
	}
}
