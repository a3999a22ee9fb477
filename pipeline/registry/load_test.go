package registry

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
)

func TestTheDesignsDocumentLoadsAndNeverDialsTheStore(t *testing.T) {
	r := loaded(t, strings.Replace(sample, "127.0.0.1:6379", "127.0.0.1:1", 1), unavailable())
	p := r.MustPipeline("billing")
	assert.Equal(t, `billing: timeout "billing" 5s > breaker "payments" > retry "payments" > ratelimit "api" > bulkhead "db" > attempt-timeout "payments" 2s > fn`, p.String())
	assert.Equal(t, breaker.Closed, r.MustBreaker("payments").State())
	assert.Zero(t, r.store.client.PoolStats().TotalConns)
	assert.Zero(t, r.store.client.PoolStats().Misses, "nobody has asked for a connection")
}

func TestALocalPipelineFromYAMLRuns(t *testing.T) {
	r := loaded(t, strings.ReplaceAll(sample, ", shared: true", ""), unavailable())
	calls := 0
	got, err := pipeline.Do(bg, r.MustPipeline("billing"), func(context.Context) (int, error) {
		if calls++; calls < 2 {
			return 0, errDown
		}
		return 42, nil
	})
	require.NoError(t, err)
	assert.Equal(t, 42, got)
	assert.Equal(t, 2, calls)
	cfg := r.MustRetry("payments").Config()
	assert.Equal(t, 3, cfg.MaxAttempts)
	assert.Equal(t, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, []time.Duration{cfg.Backoff(1), cfg.Backoff(2)})
	assert.Equal(t, 5*time.Second, cfg.MaxDelay)
}

func TestAccessorsGiveEveryoneTheSamePointer(t *testing.T) {
	r := loaded(t, strings.ReplaceAll(sample, ", shared: true", ""), unavailable())
	assert.Same(t, r.MustPipeline("billing"), r.MustPipeline("billing"))
	assert.Same(t, r.MustRetry("payments"), r.MustRetry("payments"))
	assert.Same(t, r.MustBreaker("payments"), r.MustBreaker("payments"))
	assert.Same(t, r.MustRateLimit("api"), r.MustRateLimit("api"))
	assert.Same(t, r.MustBulkhead("db"), r.MustBulkhead("db"))
	assert.Same(t, r.MustTimeout("payments"), r.MustTimeout("payments"))
}

func TestRetryAndCircuitBreakerWithoutEntriesServeDefaultsUnderAnyName(t *testing.T) {
	r := loaded(t, "")
	assert.Same(t, r.MustRetry("any"), r.MustRetry("any"))
	assert.Equal(t, "any", r.MustRetry("any").Config().Name)
	assert.Same(t, r.MustBreaker("any"), r.MustBreaker("any"))
	for _, err := range []error{
		second(r.RateLimit("x")), second(r.Bulkhead("x")), second(r.Timeout("x")), second(r.Cooldown("x")), second(r.RetryBudget("x")), second(r.Pipeline("x")),
	} {
		assert.ErrorContains(t, err, "instance named [x]; available: (none)")
	}
	assert.Panics(t, func() { r.MustPipeline("x") })
}

func second[T any](_ T, err error) error { return err }

func TestAPipelineMayNameADefaultWhereASectionHasNoEntries(t *testing.T) {
	r := loaded(t, "resilience: {pipelines: {a: {retry: x, circuit-breaker: y}}}")
	assert.Equal(t, `a: retry "x" > breaker "y" > fn`, r.MustPipeline("a").String())
	assert.Same(t, r.MustRetry("z"), r.MustRetry("z"), "other names are still served")
}

func TestAnUnknownNameIsAnErrorThatListsWhatExists(t *testing.T) {
	r := loaded(t, "resilience: {retry: {default: {}, aggressive: {max-attempts: 9}}}")
	_, err := r.Retry("missing")
	assert.EqualError(t, err, "no resilience [retry] instance named [missing]; available: aggressive, default")
}

func TestAllErrorsOfADocumentComeAtOnceWithPathAndText(t *testing.T) {
	assert.Equal(t, []string{
		`resilience.retry.a.max-attempts is 0: want a whole number from 1 to 64`,
		`resilience.retry.a.max-atempts is no key of the registry; available: backoff-multiplier, budget, jitter, max-attempts, max-elapsed, max-retry-after, max-wait, reserve, retry-nested, retry-on, return-last, stop-on, strict, wait-duration`,
		`resilience.retry.b.retry-on[1]: no matcher named [nope]; available: all, context, timeout`,
		`resilience.retry.c.max-wait is 1s: want at least wait-duration, 2s`,
		`resilience.circuit-breaker.a.failure-threshold is 101: want at most the window's 100 calls: more can never be reached`,
		`resilience.circuit-breaker.b.failure-rate-threshold is 1.5: want a number above 0 and at most 1`,
		`resilience.rate-limiter.a.refill-rate is missing: want a number of tokens per period, such as 10 or 0.5, or 0 for a quota that is never refilled`,
		`resilience.rate-limiter.b.idle-ttl is 720h: want 0 (never) where refill-rate is 0: reclaiming the key would hand the quota back`,
		`resilience.bulkhead.a.max-concurrent is missing: want the number of calls at once, from 1`,
		`resilience.time-limiter.a.timeout is yes: want a duration such as 250ms, 30s, 1h30m, 5d or PT5M, or a number of seconds`,
		`resilience.pipelines.a.attempt-timeout is -1s: want no negative duration`,
		`resilience.pipelines.a.retry: no resilience [retry] instance named [missing]; available: a, b, c`,
		`resilience.store.redis is missing: want a URL such as redis://127.0.0.1:6379/0, or registry.WithClient, where instances are shared`,
		`resilience.pipelines.b.attempt-timeout is 5s: want below the total timeout of 5s`,
	}, problems(t, `
resilience:
  retry:
    a: { max-attempts: 0, max-atempts: 3 }
    b: { retry-on: [timeout, nope] }
    c: { wait-duration: 2s, max-wait: 1s }
  circuit-breaker:
    a: { window-size: 100, failure-threshold: 101 }
    b: { failure-rate-threshold: 1.5 }
  rate-limiter:
    a: { max-tokens: 3 }
    b: { max-tokens: 3, refill-rate: 0, idle-ttl: 720h }
  bulkhead:
    a: {}
  time-limiter:
    a: { timeout: yes }
  pipelines:
    a: { retry: missing, attempt-timeout: -1s }
    b: { timeout: 5s, attempt-timeout: 5s }
  cooldown:
    shared: { shared: true }
`))
}

// What is wrong with one part of a pipeline hides nothing of the others.
func TestAPipelinesOwnErrorsComeBesideThoseOfItsParts(t *testing.T) {
	const times = "resilience.pipelines.p.attempt-timeout is 10: want below the total timeout of 5s"
	for doc, want := range map[string][]string{
		"pipelines: {p: {timeout: 5, attempt-timeout: 10, bulkhead: q}}": {
			"resilience.pipelines.p.bulkhead: no resilience [bulkhead] instance named [q]; available: (none)", times},
		"retry: {a: {max-attempts: 0}}, pipelines: {p: {retry: a, timeout: 5, attempt-timeout: 10}}": {
			"resilience.retry.a.max-attempts is 0: want a whole number from 1 to 64", times},
		"circuit-breaker: {a: {shared: true}}, pipelines: {p: {circuit-breaker: a, timeout: 5, attempt-timeout: 10}}": {
			"resilience.store.redis is missing: want a URL such as redis://127.0.0.1:6379/0, or registry.WithClient, where instances are shared", times},
		// Nothing follows from what is missing.
		"retry: {a: {max-attempts: 0}}, bulkhead: {q: {}}, pipelines: {p: {retry: a, bulkhead: q, retry-on-bulkhead-full: true, circuit-breaker: b, breaker: outside-retry}}": {
			"resilience.retry.a.max-attempts is 0: want a whole number from 1 to 64",
			"resilience.bulkhead.q.max-concurrent is missing: want the number of calls at once, from 1"},
		"time-limiter: {a: {timeout: -2}}, circuit-breaker: {b: {half-open-probe-timeout: 3}}, pipelines: {p: {timeout: 5, attempt-timeout: a, circuit-breaker: b}}": {
			"resilience.time-limiter.a.timeout is -2: want no negative duration"},
	} {
		assert.Equal(t, want, problems(t, "resilience: {"+doc+"}"), doc)
	}
	counting := WithPipeline(func(_ string, b pipeline.Builder) pipeline.Builder { return b.RetryOnBulkheadFull() })
	assert.Equal(t, []string{"resilience.bulkhead.q.max-concurrent is missing: want the number of calls at once, from 1"},
		problems(t, "resilience: {retry: {r: {}}, bulkhead: {q: {}}, pipelines: {p: {retry: r, bulkhead: q}}}", counting))
}
