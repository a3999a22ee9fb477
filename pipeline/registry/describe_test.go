package registry

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
)

func TestDescribeIsAPageForThreeInTheMorning(t *testing.T) {
	clk := clockwork.NewFakeClock()
	r := loaded(t, `
resilience:
  store: { redis: "redis://user:secret@127.0.0.1:1/0" }
  circuit-breaker: { payments: { consecutive: 2, wait-duration-in-open: 30s } }
  bulkhead: { db: { max-concurrent: 10 } }
  pipelines: { billing: { circuit-breaker: payments, bulkhead: db, timeout: 5 } }
`, WithClock(clk))
	for range 2 {
		_ = r.MustPipeline("billing").Run(bg, func(context.Context) error { return errDown })
	}
	clk.Advance(10 * time.Second)
	assert.Equal(t, `resilience: enabled

store
  redis      redis://…@127.0.0.1:1/0
  timeout    50ms  (default)
  prefix     fairlead  (default)
  on-outage  fail-local  (default)
  instances  1  (default)

circuit-breaker payments  (open, failure_rate 0/0.5, probes 0/1, wait_seconds 20)
  failure-rate-threshold   0.5  (default)
  failure-threshold        off  (default)
  window                   10s  (default)
  minimum-number-of-calls  20  (default)
  consecutive              2
  slow-call                off  (default)
  wait-duration-in-open    30s
  open-growth              1  (default)
  max-open-for             5m0s  (default)
  open-jitter              false  (default)
  half-open-max-calls      1  (default)
  probe-successes          1  (default)
  shared                   false  (default)

bulkhead db  (in_use 0/10)
  max-concurrent  10
  max-wait        0s  (default)
  shared          false  (default)

pipelines billing
  billing: timeout "billing" 5s > breaker "payments" > bulkhead "db" > fn
  timeout                 5s
  circuit-breaker         payments
  bulkhead                db
  retry-on-bulkhead-full  false  (default)
  retry-on-rate-limited   false  (default)
  fallback-timeout        1s  (default)
`, r.Describe().String())
	_, err := json.Marshal(r.Describe())
	assert.NoError(t, err)
}

func TestNoPasswordInMessages(t *testing.T) {
	for _, url := range []string{"redis://:hush@host:x/0", "redis://u:hush@h:1/0?min_idle_conns=3", "ftp://u:hush@x", "redis://u:hush@@h:port"} {
		_, err := LoadMap(map[string]any{"resilience": map[string]any{"store": map[string]any{"redis": url}}})
		require.Error(t, err, url)
		assert.NotContains(t, err.Error(), "hush")
		assert.Contains(t, err.Error(), "resilience.store.redis is ")
	}
}

func TestThePipelinesFallbackTimeoutIsTheDefaultThatIsShown(t *testing.T) {
	r := loaded(t, "resilience: {pipelines: {p: {timeout: 1m}, q: {timeout: 1m, fallback-timeout: 5s}}}")
	synctest.Test(t, func(t *testing.T) {
		for name, want := range map[string]time.Duration{"p": defaultFallback, "q": 5 * time.Second} {
			got, err := pipeline.DoOr(bg, r.MustPipeline(name), func(ctx context.Context) (time.Duration, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}, func(ctx context.Context, _ error) (time.Duration, error) {
				deadline, _ := ctx.Deadline()
				return time.Until(deadline), nil
			})
			require.NoError(t, err)
			assert.Equal(t, want, got, name)
		}
	})
}

func TestWithPipelineAddsWhatIsCode(t *testing.T) {
	var seen []string
	var changes []breaker.State
	r := loaded(t, "resilience: {circuit-breaker: {a: {consecutive: 1}}, pipelines: {p: {circuit-breaker: a}}}",
		WithPipeline(func(name string, base pipeline.Builder) pipeline.Builder {
			return base.Observe(func(_ context.Context, e pipeline.Event) { seen = append(seen, name+" "+e.Kind.String()) })
		}),
		WithOnChange(func(c breaker.Change) { changes = append(changes, c.To) }))
	require.ErrorIs(t, r.MustPipeline("p").Run(bg, func(context.Context) error { return errDown }), errDown)
	assert.Equal(t, []string{"p call_started", "p attempt_finished", "p call_finished"}, seen)
	assert.Equal(t, []breaker.State{breaker.Open}, changes)
	assert.Equal(t, []string{"resilience.pipelines.p: WithPipeline returned a builder named \"other\": want the one that it was given"},
		problems(t, "resilience: {pipelines: {p: {}}}", WithPipeline(func(string, pipeline.Builder) pipeline.Builder { return pipeline.For("other") })))
}
