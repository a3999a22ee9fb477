package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// A call_finished sums the call up, so that an observer need not remember it: all as in the Report.
func TestCallFinishedSumsTheCallUp(t *testing.T) {
	for name, test := range map[string]struct {
		cancelled bool
		b         pipeline.Builder
		fn        func(context.Context) (int, error)
		want      pipeline.Event
	}{
		"succeeded": {b: pipeline.For("p").Retry(steady()), fn: fails(1, errDown), want: pipeline.Event{Disposition: pipeline.Succeeded, Attempt: 2}},
		"failed":    {b: pipeline.For("p"), fn: fails(9, errDown), want: pipeline.Event{Disposition: pipeline.Failed, Attempt: 1}},
		"used up": {b: pipeline.For("p").Retry(steady()), fn: fails(9, errDown),
			want: pipeline.Event{Disposition: pipeline.Failed, Attempt: 3, Reason: retry.AttemptsExhausted}},
		"rejected": {b: pipeline.For("p").Retry(steady()).Bulkhead(refusesFrom(1, &no{wait: time.Second})), fn: fails(0, nil),
			want: pipeline.Event{Disposition: pipeline.Rejected, Layer: "bulkhead", Wait: time.Second}},
		"refused later": {b: pipeline.For("p").Retry(steady()).RateLimit(refusesFrom(2, &no{wait: time.Second})), fn: fails(9, errDown),
			want: pipeline.Event{Disposition: pipeline.Failed, Attempt: 1, Layer: "ratelimit", Reason: retry.Refused, Wait: time.Second}},
		"refused, then mended": {b: pipeline.For("p").Retry(steady()).RateLimit(&rule{acquire: movedOn(1, &no{})}).RetryOnRateLimited(),
			fn: fails(0, nil), want: pipeline.Event{Disposition: pipeline.Succeeded, Attempt: 1}},
		"deferred": {b: pipeline.For("p").Retry(steady()), fn: fails(9, &later{wait: time.Hour}),
			want: pipeline.Event{Disposition: pipeline.Deferred, Attempt: 1, Reason: retry.RetryAfterExceedsMaximumDelay, Wait: time.Hour}},
		"expired": {b: pipeline.For("p").Timeout(limitOf(time.Second)).Retry(steady()), fn: hangs(9),
			want: pipeline.Event{Disposition: pipeline.Expired, Attempt: 1, Reason: retry.ContextEnded}},
		"cancelled": {cancelled: true, b: pipeline.For("p").Retry(steady()), fn: fails(0, nil), want: pipeline.Event{Disposition: pipeline.Cancelled}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.cancelled {
					cancel()
				}
				var last pipeline.Event
				p := test.b.Observe(func(_ context.Context, e pipeline.Event) { last = e }).MustBuild()
				_, r, err := pipeline.DoDetailed(ctx, p, test.fn)
				require.Equal(t, pipeline.CallFinished, last.Kind)
				require.Equal(t, test.want, pipeline.Event{
					Disposition: last.Disposition, Attempt: last.Attempt, Layer: last.Layer, Reason: last.Reason, Wait: last.Wait,
				})
				require.Equal(t, err, last.Err)
				require.Equal(t, pipeline.Event{
					Disposition: r.Disposition, Attempt: r.Attempts, Layer: r.Layer, Reason: r.Reason, Wait: r.Wait, Took: r.Elapsed,
				}, pipeline.Event{
					Disposition: last.Disposition, Attempt: last.Attempt, Layer: last.Layer, Reason: last.Reason, Wait: last.Wait, Took: last.Took,
				})
			})
		})
	}
}

// A call that panicked has failed, after the runs that it had.
func TestCallFinishedOfAPanicSumsUp(t *testing.T) {
	var last pipeline.Event
	p := pipeline.For("p").Observe(func(_ context.Context, e pipeline.Event) { last = e }).MustBuild()
	require.Panics(t, func() { _ = p.Run(t.Context(), func(context.Context) error { panic("boom") }) })
	require.Equal(t, pipeline.Failed, last.Disposition)
	require.Equal(t, 1, last.Attempt)
	require.Same(t, pipeline.ErrPanicked, last.Err)
}
