package registry

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/breaker/redisbreaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/bulkhead/redisbulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/cooldown/rediscooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/ratelimit/redislimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
)

// every sets each key to a value of its own, which is no default.
const every = `
resilience:
  store: { redis: 'redis://127.0.0.1:1', timeout: 70ms, prefix: pre, on-outage: fail-open, instances: 3 }
  retry-budget: { b: { capacity: 11, refill: 12, per: 13s, hold: 14s }, r: { ratio: 0.7, min-per-second: 8, ttl: 9s } }
  retry: { a: { max-attempts: 7, wait-duration: 3s, backoff-multiplier: 4, max-wait: 40s, jitter: none, retry-on: [timeout], stop-on: [context],
    max-retry-after: 41s, max-elapsed: 42s, reserve: 43ms, budget: b, return-last: true, retry-nested: true, strict: true }, none: { budget: none, max-attempts: unlimited, max-elapsed: 1m } }
  circuit-breaker: { a: { failure-rate-threshold: off, failure-threshold: 21, window-size: 22, window: 23s, minimum-number-of-calls: 20, consecutive: 19, slow-call: 25s, slow-rate: 0.26,
    wait-duration-in-open: 27s, open-growth: 2.8, max-open-for: 29s, open-jitter: true, half-open-max-calls: 30, probe-successes: 31, half-open-probe-timeout: 32s, record-on: [timeout],
    blame-after: 33s, shared: true, on-outage: fail-closed, idle-ttl: 34h, min-reporters: 35 }, rate: { failure-rate-threshold: 0.36, slow-call: off, consecutive: off, blame-after: off } }
  rate-limiter: { a: { max-tokens: 51, refill-rate: 52, per: 53s, timeout: 54s }, s: { refill-rate: 1, max-tokens: 60, shared: true, on-outage: fail-closed, instances: 55, idle-ttl: 56h, prefetch: 57 } }
  bulkhead: { a: { max-concurrent: 61, max-wait: 62s, max-queue: 63 }, s: { max-concurrent: 1, shared: true, permit-ttl: 64s, on-outage: fail-local, instances: 65 }, heir: { max-concurrent: 1, shared: true } }
  time-limiter: { a: { timeout: 71s } }
  cooldown: { a: { max: 81s }, s: { shared: true, on-outage: fail-closed } }
`

// Each key goes where it says: the leaf's Config and the shared guard's options, field by field.
func TestEachKeySetsItsField(t *testing.T) {
	r := loaded(t, every)
	e := r.env()
	got := r.MustRetry("a").Config()
	assert.Equal(t, []time.Duration{3 * time.Second, 12 * time.Second}, []time.Duration{got.Backoff(1), got.Backoff(2)})
	assert.True(t, got.RetryIf(slowness{}))
	assert.False(t, got.RetryIf(errDown))
	assert.False(t, got.StopIf(errDown))
	assert.Same(t, r.MustRetryBudget("b"), got.Budget)
	got.Backoff, got.RetryIf, got.StopIf, got.Budget, got.Clock = nil, nil, nil, nil, nil
	assert.Equal(t, retry.Config{Name: "a", MaxAttempts: 7, Jitter: retry.None, MaxDelay: 40 * time.Second, MaxRetryAfter: 41 * time.Second,
		MaxElapsed: 42 * time.Second, Reserve: 43 * time.Millisecond, ReturnLast: true, RetryNested: true, Strict: true}, got)
	assert.Equal(t, retry.Unlimited, r.MustRetry("none").Config().MaxAttempts)
	assert.True(t, r.MustRetry("none").Config().NoBudget)
	assert.Equal(t, budget.TokenConfig{Capacity: 11, Refill: 12, Per: 13 * time.Second, Hold: 14 * time.Second}, r.MustRetryBudget("b").(*budget.Tokens).Config())
	assert.Equal(t, budget.RatioConfig{Ratio: 0.7, MinPerSecond: 8, TTL: 9 * time.Second}, r.MustRetryBudget("r").(*budget.Ratio).Config())

	circuit := r.breakers.now["a"].spec
	cfg := circuit.config(e)
	assert.False(t, cfg.Ignore(slowness{}))
	assert.True(t, cfg.Ignore(errDown))
	cfg.Ignore = nil
	assert.Equal(t, breaker.Config{Name: "a", Window: breaker.Count(22).Within(23 * time.Second), MinCalls: 20, FailureRate: breaker.Off, FailureCount: 21, Consecutive: 19,
		SlowCall: 25 * time.Second, SlowRate: 0.26, OpenFor: 27 * time.Second, OpenGrowth: 2.8, MaxOpenFor: 29 * time.Second, OpenJitter: true,
		Probes: 30, ProbeSuccesses: 31, ProbeLease: 32 * time.Second, BlameAfter: 33 * time.Second}, cfg)
	assert.Equal(t, redisbreaker.Options{Prefix: "pre", Timeout: 70 * time.Millisecond, OnOutage: leaf.FailClosed, IdleTTL: 34 * time.Hour, MinReporters: 35}, circuit.options(e))
	rate := r.breakers.now["rate"].spec.config(e)
	assert.Equal(t, breaker.Config{Name: "rate", FailureRate: 0.36, SlowCall: breaker.Off, Consecutive: breaker.Off, BlameAfter: breaker.Off}, rate)

	assert.Equal(t, ratelimit.Config{Name: "a", Rate: 52, Per: 53 * time.Second, Burst: 51, MaxWait: 54 * time.Second}, r.limits.now["a"].item.Config())
	limit := r.limits.now["s"].spec
	assert.Equal(t, redislimit.Options{Prefix: "pre", Timeout: 70 * time.Millisecond, OnOutage: leaf.FailClosed, Instances: 55, IdleTTL: 56 * time.Hour, Prefetch: 57}, limit.options(e))
	assert.Equal(t, bulkhead.Config{Name: "a", MaxConcurrent: 61, MaxWait: 62 * time.Second, MaxQueue: 63}, r.bulkheads.now["a"].item.Config())
	own, heir := r.bulkheads.now["s"].spec, r.bulkheads.now["heir"].spec
	assert.Equal(t, redisbulkhead.Options{Prefix: "pre", Timeout: 70 * time.Millisecond, OnOutage: leaf.FailLocal, Instances: 65, LeaseTTL: 64 * time.Second}, own.options(e))
	assert.Equal(t, redisbulkhead.Options{Prefix: "pre", Timeout: 70 * time.Millisecond, OnOutage: leaf.FailOpen, Instances: 3, LeaseTTL: time.Minute}, heir.options(e), "the store's, where it says nothing")
	assert.Equal(t, timeout.Config{Name: "a", Limit: 71 * time.Second}, r.MustTimeout("a").Config())
	assert.Equal(t, 81*time.Second, r.cooldowns.now["a"].item.Config().Max)
	cool := r.cooldowns.now["s"].spec
	assert.Equal(t, rediscooldown.Options{Prefix: "pre", Timeout: 70 * time.Millisecond, OnOutage: leaf.FailClosed}, cool.options(e))
}

type slowness struct{}

func (slowness) Error() string { return "too slow" }
func (slowness) Timeout() bool { return true }

// Every other field of the leaf configs has a kebab key of its own: a field that is new must get one, or a reason here.
func TestEachFieldOfTheLeavesHasAKey(t *testing.T) {
	code := []string{"Name", "Clock", "Rand", "OnChange", "OnRetry", "OnStore", "RetryAfter", "Now"} // what a document cannot say, or says by its place
	for _, c := range []struct {
		config any
		keys   map[string]string
		have   []string
	}{
		{retry.Config{}, with(retryFields, "StopIf", "stop-on", "NoBudget", "budget", "ReturnLast", "return-last", "RetryNested", "retry-nested"), namesOf(retryKind.keys)},
		{breaker.Config{}, with(breakerFields, "OpenJitter", "open-jitter", "Ignore", "record-on", "IsFailure", "record-on"), namesOf(breakerKind.keys)},
		{ratelimit.Config{}, limitFields, namesOf(limitKind.keys)},
		{bulkhead.Config{}, with(nil, "MaxConcurrent", "max-concurrent", "MaxWait", "max-wait", "MaxQueue", "max-queue"), namesOf(slotsKind.keys)},
		{timeout.Config{}, with(nil, "Limit", "timeout"), namesOf(timeoutKind.keys)},
		{cooldown.Config{}, with(nil, "Max", "max"), namesOf(cooldownKind.keys)},
		{budget.RatioConfig{}, with(nil, "Ratio", "ratio", "MinPerSecond", "min-per-second", "TTL", "ttl"), namesOf(budgetKind.keys)},
		{budget.TokenConfig{}, with(nil, "Capacity", "capacity", "Refill", "refill", "Per", "per", "Hold", "hold"), namesOf(budgetKind.keys)},
		{redisbreaker.Options{}, with(nil, "Prefix", "", "Timeout", "", "OnOutage", "on-outage", "IdleTTL", "idle-ttl", "MinReporters", "min-reporters"), namesOf(breakerKind.keys)},
		{redislimit.Options{}, with(nil, "Prefix", "", "Timeout", "", "OnOutage", "on-outage", "Instances", "instances", "IdleTTL", "idle-ttl", "Prefetch", "prefetch"), namesOf(limitKind.keys)},
		{redisbulkhead.Options{}, with(nil, "Prefix", "", "Timeout", "", "OnOutage", "on-outage", "Instances", "instances", "LeaseTTL", "permit-ttl"), namesOf(slotsKind.keys)},
		{rediscooldown.Options{}, with(nil, "Prefix", "", "Timeout", "", "OnOutage", "on-outage"), namesOf(cooldownKind.keys)},
	} {
		for f := range reflect.TypeOf(c.config).Fields() {
			if !f.IsExported() || slices.Contains(code, f.Name) {
				continue
			}
			name, ok := c.keys[f.Name]
			assert.True(t, ok, "%T.%s has no key", c.config, f.Name)
			assert.True(t, name == "" || slices.Contains(c.have, name), "%T.%s: %s is no key", c.config, f.Name, name) // "" = the store's
		}
	}
}

func with(fields map[string]string, pairs ...string) map[string]string {
	all := map[string]string{}
	for f, k := range fields {
		all[f] = k
	}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// exported is what a program can read of a configuration.
func exported(config any) map[string]any {
	all := map[string]any{}
	for f, v := range reflect.ValueOf(config).Fields() {
		if f.IsExported() {
			all[f.Name] = v.Interface()
		}
	}
	return all
}

// An absent key means the leaf's default: one from configuration and one by hand are the same.
func TestWhatADocumentLeavesOutIsTheLeafsDefault(t *testing.T) {
	r := loaded(t, "resilience: {circuit-breaker: {a: {}}, rate-limiter: {a: {refill-rate: 10}}, bulkhead: {a: {max-concurrent: 3}}, time-limiter: {a: {timeout: 2s}}, cooldown: {a: {}}, retry-budget: {a: {}, b: {capacity: 3}}}")
	assert.Equal(t, exported(breaker.MustNew(breaker.Config{Name: "a"}).Config()), exported(r.breakers.now["a"].item.Config()))
	assert.Equal(t, exported(ratelimit.MustNew(ratelimit.Config{Name: "a", Rate: 10, Per: time.Second}).Config()), exported(r.limits.now["a"].item.Config()))
	assert.Equal(t, exported(bulkhead.MustNew(bulkhead.Config{Name: "a", MaxConcurrent: 3}).Config()), exported(r.bulkheads.now["a"].item.Config()))
	assert.Equal(t, timeout.MustNew(timeout.Config{Name: "a", Limit: 2 * time.Second}).Config(), r.MustTimeout("a").Config())
	assert.Equal(t, cooldown.MustNew(cooldown.Config{Name: "a"}).Config(), r.cooldowns.now["a"].item.Config())
	assert.Equal(t, budget.MustNewRatio(budget.RatioConfig{}).Config(), r.budgets.now["a"].item.ratio.Config())
	assert.Equal(t, budget.MustNewTokens(budget.TokenConfig{Capacity: 3}).Config(), r.budgets.now["b"].item.tokens.Config())
	byHand, byDocument := retry.MustNew(retry.Config{Name: "x"}).Config(), r.MustRetry("x").Config()
	for n := 1; n < 70; n++ {
		assert.Equal(t, byHand.Backoff(n), byDocument.Backoff(n))
	}
	byHand.Backoff, byDocument.Backoff, byHand.Budget, byDocument.Budget = nil, nil, nil, nil // both have a private one
	assert.Equal(t, exported(byHand), exported(byDocument))
}
