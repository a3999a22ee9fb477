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

// Section 7: every rule that decides something leaves an event, typed and in order.
func TestEventsOfARetriedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var got []pipeline.Event
		asked := 0
		full := &no{wait: time.Minute}
		p := pipeline.For("p").Retry(steady()).
			Bulkhead(&rule{acquire: func(context.Context) error {
				if asked++; asked == 3 {
					return full
				}
				return nil
			}}).
			Observe(func(_ context.Context, e pipeline.Event) {
				e.Time = time.Unix(0, int64(e.Time.Sub(began)))
				got = append(got, e)
			}).MustBuild()
		runs := 0
		_, err := pipeline.Do(t.Context(), p, func(context.Context) (int, error) {
			<-time.After(10 * time.Millisecond)
			if runs++; runs == 1 {
				return 0, &later{wait: time.Second}
			}
			return 0, errDown
		}, pipeline.OperationID("op 7"))
		at := func(ms int) time.Time { return time.Unix(0, int64(ms)*1e6) }
		want := []pipeline.Event{
			{Kind: pipeline.CallStarted, Time: at(0)},
			{Kind: pipeline.AttemptFinished, Time: at(10), Attempt: 1, Took: 10 * time.Millisecond, Err: &later{wait: time.Second}},
			{Kind: pipeline.RetryScheduled, Time: at(10), Attempt: 2, Delay: time.Second, Wait: time.Second},
			{Kind: pipeline.AttemptFinished, Time: at(1020), Attempt: 2, Took: 10 * time.Millisecond, Err: errDown},
			{Kind: pipeline.RetryScheduled, Time: at(1020), Attempt: 3, Delay: 100 * time.Millisecond},
			{Kind: pipeline.GuardRejected, Time: at(1120), Layer: "bulkhead", Attempt: 3, Wait: time.Minute, Err: full},
			{Kind: pipeline.RetryStopped, Time: at(1120), Attempt: 2, Reason: retry.Refused, Wait: time.Minute},
			{Kind: pipeline.CallFinished, Time: at(1120), Disposition: pipeline.Failed, Attempt: 2, Layer: "bulkhead", Reason: retry.Refused, Wait: time.Minute, Took: 1120 * time.Millisecond, Err: err},
		}
		for i := range want {
			want[i].Pipeline, want[i].Operation = "p", "op 7"
		}
		require.Equal(t, want, got)
	})
}

// A call that ran nothing still has a beginning and an end; a refusal outside is told, too.
func TestEventsOfCallsThatRanNothing(t *testing.T) {
	var kinds []string
	observe := func(_ context.Context, e pipeline.Event) { kinds = append(kinds, e.Kind.String()+" "+e.Layer) }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fn := func(context.Context) error { return nil }
	require.Error(t, pipeline.For("p").Observe(observe).MustBuild().Run(ctx, fn))
	require.Equal(t, []string{"call_started ", "call_finished "}, kinds)

	kinds = nil
	p := pipeline.For("p").Retry(steady()).Breaker(&rule{acquire: func(context.Context) error { return &no{} }}).BreakerOutsideRetry().
		Observe(observe).MustBuild()
	require.Error(t, p.Run(t.Context(), fn))
	require.Equal(t, []string{"call_started ", "rejected breaker", "call_finished breaker"}, kinds)
}

// A panic leaves its events, too, with ErrPanicked in the place of an error.
func TestEventsOfAPanic(t *testing.T) {
	var kinds []pipeline.Kind
	p := pipeline.For("p").Observe(func(_ context.Context, e pipeline.Event) {
		kinds = append(kinds, e.Kind)
		if e.Kind != pipeline.CallStarted {
			require.Same(t, pipeline.ErrPanicked, e.Err)
		}
	}).MustBuild()
	require.Panics(t, func() { _ = p.Run(t.Context(), func(context.Context) error { panic("fn") }) })
	require.Equal(t, []pipeline.Kind{pipeline.CallStarted, pipeline.AttemptFinished, pipeline.CallFinished}, kinds)
}
