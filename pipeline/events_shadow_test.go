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
	"github.com/stretchr/testify/require"
)

// The safe first day in production: guards behind a Shadow report what they would have refused, attempt by attempt, and refuse
// nobody. To the pipeline nothing was refused: that is told to the Shadow's report alone, before the attempt runs.
func TestShadowsReportWhatWouldHaveBeenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := breaker.MustNew(breaker.Config{Name: "b", OpenFor: time.Hour})
		require.NoError(t, open.ForceOpen(t.Context()))
		taken := bulkhead.MustNew(bulkhead.Config{Name: "h", MaxConcurrent: 1, MaxWait: time.Hour})
		held, err := taken.Acquire(t.Context())
		require.NoError(t, err)
		spent := ratelimit.MustNewQuota("q", 1)
		require.True(t, spent.Allow())
		cooling := cooldown.MustNew(cooldown.Config{Name: "c"})
		cooling.Hint(t.Context(), time.Second)

		heard := listen()
		shadow := func(g leaf.Trier) leaf.Guard {
			return leaf.Shadow(g, func(_ context.Context, refusal error) { heard.note("would: " + refusal.Error()) })
		}
		p := pipeline.For("p").Retry(steady()).Cooldown(shadow(cooling)).Breaker(shadow(open)).RateLimit(shadow(spent)).Bulkhead(shadow(taken)).
			Observe(heard.observe).MustBuild()
		_, err = pipeline.Do(t.Context(), p, fails(1, errDown))
		requireLines(t, []string{
			"0s call_started",
			`0s would: cooldown "c": cooling down for another 1s`, `0s would: breaker "b": open`, `0s would: ratelimit "q": not enough tokens left, never refilled`, `0s would: bulkhead "h": full (1 at once)`,
			"0s attempt_finished #1: down", "0s retry_scheduled #2 delay 100ms",
			`100ms would: cooldown "c": cooling down for another 900ms`, `100ms would: breaker "b": open`, `100ms would: ratelimit "q": not enough tokens left, never refilled`, `100ms would: bulkhead "h": full (1 at once)`,
			"100ms attempt_finished #2", "100ms call_finished took 100ms",
		}, heard.lines, err)
		require.NoError(t, held.Settle(t.Context(), leaf.Outcome{}))
	})
}
