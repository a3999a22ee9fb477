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
	"github.com/stretchr/testify/require"
)

// What DoDetailed tells of each way a call can end.
func TestDispositions(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, cancel := context.WithTimeout(context.Background(), -1)
	defer cancel()
	full := &no{wait: time.Minute}
	refuse := func(n int) *rule {
		asked := 0
		return &rule{acquire: func(context.Context) error {
			if asked++; asked >= n {
				return full
			}
			return nil
		}}
	}
	for name, test := range map[string]struct {
		ctx  context.Context
		b    pipeline.Builder
		fn   func(context.Context) (int, error)
		want pipeline.Report
	}{
		"succeeded": {b: pipeline.For("p").Retry(steady()), fn: fails(1, errDown), want: pipeline.Report{
			Disposition: pipeline.Succeeded, Attempts: 2, Elapsed: 100 * time.Millisecond, Waited: 100 * time.Millisecond,
			History: []pipeline.Attempt{{Number: 1, Err: errDown}, {Number: 2, Began: 100 * time.Millisecond, Delay: 100 * time.Millisecond}},
		}},
		"failed": {b: pipeline.For("p"), fn: fails(9, errDown), want: pipeline.Report{
			Disposition: pipeline.Failed, Attempts: 1, Last: errDown, History: []pipeline.Attempt{{Number: 1, Err: errDown}},
		}},
		"exhausted": {b: pipeline.For("p").Retry(steady(func(c *retry.Config) { c.MaxAttempts = 1 })), fn: fails(9, errDown), want: pipeline.Report{
			Disposition: pipeline.Failed, Attempts: 1, Reason: retry.AttemptsExhausted, Last: errDown,
			History: []pipeline.Attempt{{Number: 1, Err: errDown}},
		}},
		"rejected": {b: pipeline.For("p").Retry(steady()).Bulkhead(refuse(1)), fn: fails(0, nil), want: pipeline.Report{
			Disposition: pipeline.Rejected, Layer: "bulkhead", Wait: time.Minute,
		}},
		"rejected by the breaker outside": {b: pipeline.For("p").Retry(steady()).Breaker(refuse(1)).BreakerOutsideRetry(), fn: fails(0, nil),
			want: pipeline.Report{Disposition: pipeline.Rejected, Layer: "breaker", Wait: time.Minute}},
		"refused after a run": {b: pipeline.For("p").Retry(steady()).RateLimit(refuse(2)), fn: fails(9, errDown), want: pipeline.Report{
			Disposition: pipeline.Failed, Attempts: 1, Reason: retry.Refused, Layer: "ratelimit", Wait: time.Minute, Last: errDown,
			Elapsed: 100 * time.Millisecond, Waited: 100 * time.Millisecond, History: []pipeline.Attempt{{Number: 1, Err: errDown}},
		}},
		"cancelled": {ctx: cancelled, b: pipeline.For("p"), fn: fails(0, nil), want: pipeline.Report{Disposition: pipeline.Cancelled}},
		"expired":   {ctx: expired, b: pipeline.For("p"), fn: fails(0, nil), want: pipeline.Report{Disposition: pipeline.Expired}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.ctx != nil {
					ctx = test.ctx
				}
				_, r, err := pipeline.DoDetailed(ctx, test.b.MustBuild(), test.fn)
				require.Equal(t, test.want.Disposition == pipeline.Succeeded, err == nil)
				require.Equal(t, test.want, r)
			})
		})
	}
}

// A deferral: fn ran, and the other side asked for a wait that was not slept.
func TestDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("p").Retry(steady()).MustBuild()
		_, r, err := pipeline.DoDetailed(t.Context(), p, fails(9, &later{wait: time.Hour}))
		require.Error(t, err)
		require.Equal(t, pipeline.Deferred, r.Disposition)
		require.Equal(t, retry.RetryAfterExceedsMaximumDelay, r.Reason)
		require.Equal(t, time.Hour, r.Wait)
		require.Equal(t, 1, r.Attempts)
		require.Zero(t, r.Waited)

		p = pipeline.For("p").Timeout(limitOf(10 * time.Second)).Retry(steady()).MustBuild()
		_, r, err = pipeline.DoDetailed(t.Context(), p, fails(9, &later{wait: 15 * time.Second}))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, pipeline.Deferred, r.Disposition)
		require.Equal(t, retry.RetryAfterExceedsDeadline, r.Reason)

		p = pipeline.For("p").Retry(steady(func(c *retry.Config) {
			c.ReturnLast = true // the failure itself, which says nothing of a wait
			c.RetryAfter = func(error) (time.Duration, bool) { return time.Hour, true }
		})).MustBuild()
		_, r, err = pipeline.DoDetailed(t.Context(), p, fails(9, errDown))
		require.Equal(t, errDown, err)
		require.Equal(t, pipeline.Deferred, r.Disposition)
		require.Equal(t, time.Hour, r.Wait)
	})
}

// Time inside fn and time waited are told apart.
func TestReportTellsWaitingFromRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &rule{acquire: func(context.Context) error { <-time.After(30 * time.Millisecond); return nil }}
		p := pipeline.For("p").Retry(steady()).Bulkhead(slow).MustBuild()
		runs := 0
		_, r, err := pipeline.DoDetailed(t.Context(), p, func(context.Context) (int, error) {
			<-time.After(time.Second)
			if runs++; runs == 1 {
				return 0, errDown
			}
			return 0, nil
		})
		require.NoError(t, err)
		require.Equal(t, 2160*time.Millisecond, r.Elapsed)
		require.Equal(t, 160*time.Millisecond, r.Waited)
		require.Equal(t, []pipeline.Attempt{
			{Number: 1, Began: 30 * time.Millisecond, Took: time.Second, Err: errDown},
			{Number: 2, Began: 1160 * time.Millisecond, Took: time.Second, Delay: 100 * time.Millisecond},
		}, r.History)
	})
}

// Expired and cancelled while fn ran, and while a backoff or a guard waited.
func TestExpiredAndCancelledInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, errDown }
		p := pipeline.For("p").Timeout(limitOf(time.Second)).Retry(steady()).MustBuild()
		_, r, _ := pipeline.DoDetailed(t.Context(), p, hang)
		require.Equal(t, pipeline.Expired, r.Disposition)
		require.Equal(t, retry.ContextEnded, r.Reason)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		_, r, err := pipeline.DoDetailed(ctx, p, fails(9, errDown))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, pipeline.Cancelled, r.Disposition)

		wait := &rule{acquire: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		_, r, _ = pipeline.DoDetailed(t.Context(), pipeline.For("p").Timeout(limitOf(time.Second)).With(wait).MustBuild(), hang)
		require.Equal(t, pipeline.Expired, r.Disposition)
		require.Equal(t, time.Second, r.Waited)
		require.Zero(t, r.Attempts)
	})
}

func TestNamesOfDispositionsAndKinds(t *testing.T) {
	var names []string
	for d := pipeline.Succeeded; d <= pipeline.Cancelled; d++ {
		names = append(names, d.String())
	}
	require.Equal(t, []string{"succeeded", "failed", "rejected", "deferred", "expired", "cancelled"}, names)
	require.Equal(t, "Disposition(99)", pipeline.Disposition(99).String())
	names = nil
	for k := pipeline.CallStarted; k <= pipeline.GuardRejected; k++ {
		names = append(names, k.String())
	}
	require.Equal(t, []string{"call_started", "call_finished", "attempt_finished", "retry_scheduled", "retry_stopped", "rejected"}, names)
	require.Equal(t, "Kind(0)", pipeline.Kind(0).String())
}

// The result of a failed Do is the zero T, whatever fn returned beside its error. Wrap is Do.
func TestFailedDoReturnsTheZeroValue(t *testing.T) {
	p := pipeline.For("p").MustBuild()
	v, err := pipeline.Do(t.Context(), p, func(context.Context) (int, error) { return 42, errDown })
	require.Same(t, errDown, err)
	require.Zero(t, v)
	v, err = pipeline.Wrap(p, func(context.Context) (int, error) { return 42, errors.ErrUnsupported })(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Zero(t, v)
}

// MaxElapsed stops a deferral where the wait was asked for, and fails where it is a delay of our own; with ReturnLast, too.
func TestMaxElapsedDefersWhatWasAskedFor(t *testing.T) {
	for _, returnLast := range []bool{false, true} {
		for name, test := range map[string]struct {
			err  error
			want pipeline.Disposition
		}{
			"asked for":             {&later{wait: 10 * time.Second}, pipeline.Deferred},
			"our own":               {errDown, pipeline.Failed},
			"our own, hint shorter": {&later{wait: time.Millisecond}, pipeline.Failed},
		} {
			p := pipeline.For("p").Retry(steady(func(c *retry.Config) {
				c.Backoff, c.MaxElapsed, c.ReturnLast = retry.Constant(5*time.Second), time.Second, returnLast
			})).MustBuild()
			_, r, err := pipeline.DoDetailed(t.Context(), p, fails(9, test.err))
			require.ErrorIs(t, err, test.err)
			require.Equal(t, retry.MaxElapsedExceeded, r.Reason, name)
			require.Equal(t, test.want, r.Disposition, name)
		}
	}
}

// Hooks take time of the call, and are no waits.
func TestHooksAreNoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := func() { <-time.After(time.Second) }
		p := pipeline.For("p").
			Retry(steady(func(c *retry.Config) {
				c.MaxAttempts = 2
				c.OnRetry = func(context.Context, retry.Scheduled) { second() }
			})).
			Breaker(&rule{acquire: func(context.Context) error { <-time.After(10 * time.Millisecond); return nil }}).BreakerOutsideRetry().
			Bulkhead(&rule{
				acquire: func(context.Context) error { <-time.After(5 * time.Millisecond); return nil },
				settle:  func(leaf.Outcome) error { second(); return nil },
			}).
			Observe(func(context.Context, pipeline.Event) { second() }).MustBuild()
		_, r, err := pipeline.DoDetailed(t.Context(), p, fails(9, errDown))
		require.Error(t, err)
		require.Equal(t, 120*time.Millisecond, r.Waited, "10, twice 5, and a backoff of 100")
		require.Greater(t, r.Elapsed, 6*time.Second)

		full := &rule{acquire: func(context.Context) error { <-time.After(5 * time.Millisecond); return &no{} }}
		held := &rule{settle: func(leaf.Outcome) error { second(); return nil }}
		_, r, err = pipeline.DoDetailed(t.Context(), pipeline.For("p").Breaker(held).Bulkhead(full).MustBuild(), fails(0, nil))
		require.Error(t, err)
		require.Equal(t, 5*time.Millisecond, r.Waited)
		require.Equal(t, 1005*time.Millisecond, r.Elapsed)
	})
}
