package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
	"github.com/stretchr/testify/require"
)

// Section 4, row "rate limit, bulkhead": a limiter's wait that does not fit the time left is refused now, costs nothing, and says
// how long; one that fits is waited for.
func TestALimiterWaitsNoLongerThanTheTimeLeft(t *testing.T) {
	for name, test := range map[string]struct {
		total, deadline time.Duration
		waits           bool
	}{
		"the total timeout": {total: 900 * time.Millisecond}, "the caller's deadline": {deadline: 900 * time.Millisecond},
		"the earlier of both": {total: time.Hour, deadline: 900 * time.Millisecond},
		"it fits the total":   {total: 1100 * time.Millisecond, waits: true}, "it fits the deadline": {deadline: 1100 * time.Millisecond, waits: true},
		"no deadline at all": {waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := ratelimit.MustNew(ratelimit.Config{Name: "api", Rate: 1, MaxWait: time.Hour})
				require.True(t, limiter.Allow())
				before := &rule{}
				b := pipeline.For("p").Breaker(before).RateLimit(limiter)
				if test.total > 0 {
					b = b.Timeout(limitOf(test.total))
				}
				ctx := t.Context()
				if test.deadline > 0 {
					with, cancel := context.WithTimeout(ctx, test.deadline)
					defer cancel()
					ctx = with
				}
				var report pipeline.Report
				var err error
				took := in(func() { _, report, err = pipeline.DoDetailed(ctx, b.MustBuild(), fails(0, nil)) })
				if test.waits {
					require.NoError(t, err)
					require.Equal(t, time.Second, took)
					require.Equal(t, time.Second, report.Waited)
					return
				}
				require.Zero(t, took)
				require.Equal(t, &ratelimit.LimitedError{Name: "api", Wait: time.Second}, err)
				require.Equal(t, pipeline.Report{Disposition: pipeline.Rejected, Layer: "ratelimit", Wait: time.Second}, report)
				require.Equal(t, []leaf.Verdict{leaf.NotRun}, before.verdicts())
				<-time.After(time.Second)
				require.True(t, limiter.Allow(), "it cost nothing")
			})
		})
	}
}

// A wait that the caller ends is ctx's error, no refusal, and the token is the next one's.
func TestALimitersWaitThatTheCallerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errGone := errors.New("gone")
		limiter := ratelimit.MustNew(ratelimit.Config{Rate: 1, MaxWait: time.Hour})
		require.True(t, limiter.Allow())
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(errGone) })
		p := pipeline.For("p").Retry(steady()).RateLimit(limiter).RetryOnRateLimited().MustBuild()
		var err error
		require.Equal(t, 500*time.Millisecond, in(func() { err = p.Run(ctx, func(context.Context) error { t.Error("it ran"); return nil }) }))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errGone)
		require.False(t, rejection.Is(err))
		require.Equal(t, 500*time.Millisecond, in(func() { require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil })) }))
	})
}

// A bulkhead's wait ends with the time left: ctx's error or the total's, no refusal; the limiter's token and the probe come back,
// and the slot is the next one's.
func TestABulkheadsWaitThatTimeEnds(t *testing.T) {
	for name, test := range map[string]struct {
		total, deadline, retry bool
		is                     error
	}{
		"the total timeout":      {total: true, is: timeout.ErrTimeout},
		"the caller's deadline":  {deadline: true, is: errDown},
		"both at once":           {total: true, deadline: true, is: errDown}, // equal deadlines belong to the outer one
		"the total, with retry":  {total: true, retry: true, is: timeout.ErrTimeout},
		"the caller, with retry": {deadline: true, retry: true, is: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.MustNew(breaker.Config{Consecutive: 1, OpenFor: time.Second})
				limiter := ratelimit.MustNew(ratelimit.Config{Rate: 1000, Burst: 5})
				slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1, MaxWait: time.Hour})
				build := pipeline.For("p").Breaker(b).RateLimit(limiter).Bulkhead(slots)
				if test.retry {
					build = build.Retry(steady()).RetryOnBulkheadFull()
				}
				require.Error(t, build.MustBuild().Run(t.Context(), func(context.Context) error { return errTrips }))
				<-time.After(time.Second)
				require.Equal(t, breaker.HalfOpen, b.State())

				held, err := slots.Acquire(t.Context())
				require.NoError(t, err)
				if test.total {
					build = build.Timeout(limitOf(time.Second))
				}
				ctx := t.Context()
				if test.deadline {
					with, cancel := context.WithTimeoutCause(ctx, time.Second, errDown)
					defer cancel()
					ctx = with
				}
				p := build.MustBuild()
				var report pipeline.Report
				require.Equal(t, time.Second, in(func() {
					_, report, err = pipeline.DoDetailed(ctx, p, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
				}))
				require.ErrorIs(t, err, test.is)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.False(t, rejection.Is(err))
				require.Equal(t, pipeline.Expired, report.Disposition)
				require.Zero(t, report.Attempts)
				require.Equal(t, time.Second, report.Waited)
				require.Equal(t, breaker.HalfOpen, b.State())
				require.Zero(t, b.Snapshot().Probes)
				require.Equal(t, 5.0, limiter.Tokens())
				require.Zero(t, slots.Queued())
				require.NoError(t, held.Settle(t.Context(), leaf.Outcome{}))
				require.NoError(t, p.Run(t.Context(), func(context.Context) error { return nil }))
				require.Zero(t, slots.InUse())
				require.Equal(t, breaker.Closed, b.State())
			})
		})
	}
}

// errTrips is no error of any context here.
var errTrips = errors.New("trips")

// Section 4, row "breaker": who ends the call decides. An impatient caller's expiry is none of the downstream's, in a pipeline
// with all of it; a caller who gave fn all its time, and waited in vain, is; one who went away says nothing; our own limit does.
func TestWhoEndsACallDecidesForTheBreaker(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, test := range map[string]struct {
		queue, deadline, cancel time.Duration // in the bulkhead's queue before fn; the caller's
		calls, failures         int
	}{
		"went away":                  {cancel: 500 * time.Millisecond},
		"impatient, 1 of 20 ms":      {queue: 19 * time.Millisecond, deadline: 20 * time.Millisecond},
		"just less than half":        {queue: 10*time.Millisecond + 1, deadline: 20 * time.Millisecond},
		"half":                       {queue: 10 * time.Millisecond, deadline: 20 * time.Millisecond, calls: 1, failures: 1},
		"all of 20 ms":               {deadline: 20 * time.Millisecond, calls: 1, failures: 1},
		"100 ms of much":             {queue: 300 * time.Millisecond, deadline: 400 * time.Millisecond, calls: 1, failures: 1},
		"just less of much":          {queue: 300*time.Millisecond + 1, deadline: 400 * time.Millisecond},
		"our own limit":              {calls: 1, failures: 1},
		"our own, before the caller": {deadline: 2 * time.Second, calls: 1, failures: 1},
		"at the caller's instant":    {deadline: time.Second, calls: 1, failures: 1}, // the caller's: it had all its time
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker.MustNew(breaker.Config{Window: breaker.Count(10), Consecutive: breaker.Off})
				slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1, MaxWait: time.Minute})
				if test.queue > 0 {
					held, err := slots.Acquire(t.Context())
					require.NoError(t, err)
					time.AfterFunc(test.queue, func() { _ = held.Settle(context.Background(), leaf.Outcome{}) })
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.cancel > 0 {
					time.AfterFunc(test.cancel, cancel)
				}
				if test.deadline > 0 {
					with, stop := context.WithTimeout(ctx, test.deadline)
					defer stop()
					ctx = with
				}
				p := pipeline.For("p").Breaker(b).Bulkhead(slots).AttemptTimeout(limitOf(time.Second)).MustBuild()
				require.Error(t, p.Run(ctx, hang))
				require.Equal(t, test.calls, b.Snapshot().Calls)
				require.Equal(t, test.failures, b.Snapshot().Failures)
			})
		})
	}
}
