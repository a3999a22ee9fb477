package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// What a call took, by its event and by its report: everything up to its result. The reading at fn's end serves where nothing
// that may take time follows.
func TestWhatACallTook(t *testing.T) {
	const inFn, after = 3 * time.Second, 20 * time.Second
	slow := &rule{settle: func(leaf.Outcome) error { <-time.After(after); return nil }}
	// closing is a breaker that a success closes, which its hook takes its time to note.
	closing := func() *breaker.Breaker {
		b := breaker.MustNew(breaker.Config{Consecutive: 1, OpenFor: time.Second, OnChange: func(c breaker.Change) {
			if c.To == breaker.Closed {
				<-time.After(after)
			}
		}})
		p, _ := b.Acquire(context.Background())
		_ = p.Settle(context.Background(), leaf.Outcome{Err: errDown})
		<-time.After(time.Second)
		return b
	}
	// all is every guard of ours: none of them takes time to settle a success of a closed circuit.
	all := func(b pipeline.Builder) pipeline.Builder {
		return b.Retry(steady()).Cooldown(cooldown.MustNew(cooldown.Config{})).RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 100})).
			Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 3}))
	}
	quick := func() *breaker.Breaker { return breaker.MustNew(breaker.Config{}) }
	for name, c := range map[string]struct {
		with func(pipeline.Builder) pipeline.Builder
		took time.Duration
	}{
		"nothing":                          {func(b pipeline.Builder) pipeline.Builder { return b }, inFn},
		"all guards":                       {func(b pipeline.Builder) pipeline.Builder { return all(b).Breaker(quick()) }, inFn},
		"all guards, outside":              {func(b pipeline.Builder) pipeline.Builder { return all(b).Breaker(quick()).BreakerOutsideRetry() }, inFn},
		"a guard that takes time":          {func(b pipeline.Builder) pipeline.Builder { return b.With(slow) }, inFn + after},
		"one outside the others":           {func(b pipeline.Builder) pipeline.Builder { return all(b).Breaker(slow) }, inFn + after},
		"one outside the retry":            {func(b pipeline.Builder) pipeline.Builder { return all(b).Breaker(slow).BreakerOutsideRetry() }, inFn + after},
		"a breaker that closes":            {func(b pipeline.Builder) pipeline.Builder { return all(b).Breaker(closing()) }, inFn + after},
		"a breaker outside that closes":    {func(b pipeline.Builder) pipeline.Builder { return all(b).Breaker(closing()).BreakerOutsideRetry() }, inFn + after},
		"one that closes, one inside":      {func(b pipeline.Builder) pipeline.Builder { return all(b).Breaker(quick()).With(closing()) }, inFn + after},
		"one that closes, on another part": {func(b pipeline.Builder) pipeline.Builder { return b.With(quick(), closing()).With(slow) }, inFn + 2*after},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []time.Duration
				b := c.with(pipeline.For("p")).Observe(func(_ context.Context, e pipeline.Event) {
					if e.Kind == pipeline.CallFinished {
						told = append(told, e.Took)
					}
				})
				p := b.MustBuild()
				_, report, err := pipeline.DoDetailed(t.Context(), p, func(context.Context) (int, error) { <-time.After(inFn); return 1, nil })
				require.NoError(t, err)
				require.Equal(t, []time.Duration{c.took}, told)
				require.Equal(t, c.took, report.Elapsed)
			})
		})
	}
}

// A failure has no such reading, nor has an injected clock.
func TestWhatAFailedCallTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		p := pipeline.For("p").Observe(func(_ context.Context, e pipeline.Event) {
			if e.Kind == pipeline.AttemptFinished {
				<-time.After(time.Second)
			}
			took = e.Took
		}).MustBuild()
		require.Error(t, p.Run(t.Context(), func(context.Context) error { <-time.After(time.Second); return errDown }))
		require.Equal(t, 2*time.Second, took)
	})
	fake := clockwork.NewFakeClock()
	var took time.Duration
	p := pipeline.For("p").RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 1, Clock: fake})).Observe(func(_ context.Context, e pipeline.Event) {
		if e.Kind == pipeline.AttemptFinished {
			fake.Advance(time.Second)
		}
		took = e.Took
	}).MustBuild()
	require.NoError(t, p.Run(t.Context(), func(context.Context) error { fake.Advance(time.Second); return nil }))
	require.Equal(t, 2*time.Second, took)
}
