package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
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
  half-open-probe-timeout  the open time  (default)
  record-on                all  (default)
  blame-after              half of the time given, at most 100ms  (default)
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

// What a default follows is said in words: a retry's own budget is there, and can be empty, though no document names it.
func TestDescribeShowsDefaultsThatFollowSomethingElse(t *testing.T) {
	r := loaded(t, `
resilience:
  retry: { a: { max-attempts: 11, wait-duration: 0 }, free: { budget: none, retry-on: timeout }, some: { budget: pool } }
  retry-budget: { pool: { capacity: 1 } }
  circuit-breaker: { a: { half-open-probe-timeout: 0, blame-after: off, record-on: timeout } }
  bulkhead: { a: { max-concurrent: 1, max-wait: 1s }, b: { max-concurrent: 1, max-wait: 1s, max-queue: 7 } }
`, WithClock(clockwork.NewFakeClock()))
	value := func(section, name, key string) (value string, byDefault bool) {
		r.EachSetting(func(s, n, k, v string, d bool) bool {
			if s == section && n == name && k == key {
				value, byDefault = v, d
			}
			return true
		})
		return value, byDefault
	}
	for _, c := range []struct {
		section, name, key, value string
		byDefault                 bool
	}{
		{"retry", "a", "budget", "its own: ratio 0.2, min-per-second 10, ttl 10s", true},
		{"retry", "free", "budget", "none", false},
		{"retry", "some", "budget", "pool", false},
		{"retry", "a", "retry-on", "all", true},
		{"retry", "free", "retry-on", "[timeout]", false},
		{"circuit-breaker", "a", "half-open-probe-timeout", "0s", false},
		{"circuit-breaker", "a", "blame-after", "off", false},
		{"circuit-breaker", "a", "record-on", "[timeout]", false},
		{"bulkhead", "a", "max-queue", "as many as wait", true},
		{"bulkhead", "b", "max-queue", "7", false},
	} {
		value, byDefault := value(c.section, c.name, c.key)
		assert.Equal(t, c.value, value, "%s %s %s", c.section, c.name, c.key)
		assert.Equal(t, c.byDefault, byDefault, "%s %s %s", c.section, c.name, c.key)
	}
	balances := func() (lines []string) {
		for line := range strings.Lines(r.Describe().String()) {
			if strings.HasPrefix(line, "retry") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return lines
	}
	full := r.MustRetry("a").Config().Budget.(*budget.Ratio).Balance()
	assert.Equal(t, []string{fmt.Sprintf("retry a  (balance %d)", full), "retry free", "retry some  (balance 1)", "retry-budget pool  (balance 1)"}, balances())
	for _, b := range []budget.Retry{r.MustRetry("a").Config().Budget, r.MustRetryBudget("pool")} {
		for token, ok := b.Reserve(); ok; token, ok = b.Reserve() {
			token.Commit()
		}
	}
	assert.Equal(t, []string{"retry a  (balance 0)", "retry free", "retry some  (balance 0)", "retry-budget pool  (balance 0)"}, balances(), "what a person looks for")
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
