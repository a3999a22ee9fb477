package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// Events are free when nobody listens, and cost no allocation when somebody does: a success, a mended call, a failure and a refusal
// allocate the same with no observer, with one, with a subscriber beside it, and after everybody has left.
func TestAllocEventsAddNothing(t *testing.T) {
	open := breaker.MustNew(breaker.Config{OpenFor: time.Hour})
	require.NoError(t, open.ForceOpen(t.Context()))
	soon := retry.MustNew(retry.Config{Backoff: retry.Immediate, NoBudget: true})
	steadfast := breaker.MustNew(breaker.Config{FailureRate: breaker.Off, FailureCount: 1 << 20, Consecutive: breaker.Off})
	held := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
	_, err := held.Acquire(t.Context())
	require.NoError(t, err)
	down := errors.New("down")
	for name, test := range map[string]struct {
		b     pipeline.Builder
		fails int
		most  float64
	}{
		"plain call":       {b: pipeline.For("p")},
		"success":          {b: full(breaker.Window{})},
		"outside":          {b: full(breaker.Window{}).BreakerOutsideRetry()},
		"attempt timeout":  {b: full(breaker.Window{}).AttemptTimeout(timeout.MustNew(timeout.Config{Limit: time.Minute})), most: 1},
		"mended":           {b: full(breaker.Window{}).Breaker(steadfast).Retry(soon), fails: 2},
		"failure":          {b: pipeline.For("p"), fails: 1},
		"attempts used up": {b: full(breaker.Window{}).Breaker(steadfast).Retry(soon), fails: 9, most: 1},
		"open":             {b: full(breaker.Window{}).Breaker(open), most: 1},
		"full":             {b: full(breaker.Window{}).Bulkhead(held), most: 1},
	} {
		t.Run(name, func(t *testing.T) {
			per := func(p *pipeline.Pipeline) float64 {
				return testing.AllocsPerRun(500, func() {
					n := 0
					_, _ = pipeline.Do(t.Context(), p, func(context.Context) (int, error) {
						if n++; n <= test.fails {
							return 0, down
						}
						return n, nil
					})
				})
			}
			told := 0
			observe := func(context.Context, pipeline.Event) { told++ }
			silent := per(test.b.MustBuild())
			require.LessOrEqual(t, silent, test.most, "nobody")
			require.Equal(t, silent, per(test.b.Observe(observe).MustBuild()), "an observer")
			require.NotZero(t, told)
			p := test.b.Observe(observe).MustBuild()
			cancel := p.Subscribe(observe)
			require.Equal(t, silent, per(p), "an observer and a subscriber")
			cancel()
			p = test.b.MustBuild()
			p.Subscribe(observe)()
			told = 0
			require.Equal(t, silent, per(p), "after everybody has left")
			require.Zero(t, told)
		})
	}
}
