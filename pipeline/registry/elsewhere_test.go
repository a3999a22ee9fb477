package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
)

// All errors of a file are in its own kebab paths with the text as written, also those that Build finds: what it compares with a
// pipeline's times stands in another section.
func TestWhatBuildFindsIsToldWhereItStands(t *testing.T) {
	const shared = "store: {redis: 'redis://127.0.0.1:1'}, bulkhead: {db: {max-concurrent: 3, shared: true, permit-ttl: 1.0s}}, "
	const pool = "retry: {r: {budget: b, max-attempts: 2}}, retry-budget: {b: {capacity: 5, hold: 3000ms}}, "
	for text, want := range map[string]string{
		shared + "pipelines: {p: {bulkhead: db, attempt-timeout: 2s}}":                                                 "resilience.bulkhead.db.permit-ttl is 1.0s: want at least the 2s that the timeouts let a call last (for resilience.pipelines.p)",
		shared + "pipelines: {p: {bulkhead: db, timeout: 2s}}":                                                         "resilience.bulkhead.db.permit-ttl is 1.0s: want at least the 2s that the timeouts let a call last (for resilience.pipelines.p)",
		strings.Replace(shared, ", permit-ttl: 1.0s", "", 1) + "pipelines: {p: {bulkhead: db, timeout: 2m}}":           "resilience.bulkhead.db.permit-ttl is 1m0s: want at least the 2m0s that the timeouts let a call last (for resilience.pipelines.p)",
		"circuit-breaker: {c: {half-open-probe-timeout: '1'}}, pipelines: {p: {circuit-breaker: c, timeout: 2s}}":      "resilience.circuit-breaker.c.half-open-probe-timeout is '1': want at least the 2s that the timeouts let a call last (for resilience.pipelines.p)",
		pool + "pipelines: {p: {retry: r, attempt-timeout: 2s}}":                                                       "resilience.retry-budget.b.hold is 3000ms: want more than 1s above the attempt timeout of 2s (for resilience.pipelines.p)",
		strings.Replace(pool, ", hold: 3000ms", "", 1) + "pipelines: {'p.q': {retry: r, attempt-timeout: 1h}}":         "resilience.retry-budget.b.hold is 1m0s: want more than 1s above the attempt timeout of 1h0m0s (for resilience.pipelines[\"p.q\"])",
		"pipelines: {p: {timeout: 1s, attempt-timeout: PT2S}}":                                                         "resilience.pipelines.p.attempt-timeout is PT2S: want below the total timeout of 1s",
		"retry: {r: {strict: true, budget: none}}":                                                                     "resilience.retry.r.budget is none: want a budget, as strict asks for, unless max-attempts is 1\nresilience.retry.r.retry-on is absent: want matchers, as strict asks for, unless max-attempts is 1",
		"retry-budget: {b: {ratio: off, min-per-second: off}}":                                                         "resilience.retry-budget.b.min-per-second is off and ratio off too: want one of them, else no retry could ever be sent",
		"circuit-breaker: {c: {failure-rate-threshold: off, consecutive: off}}":                                        "resilience.circuit-breaker.c.failure-rate-threshold is off, as are consecutive, failure-threshold and slow-call: want one of them: a breaker without a rule never opens",
		"circuit-breaker: {c: {failure-rate-threshold: off, minimum-number-of-calls: 10, consecutive: 10, window: 3}}": "resilience.circuit-breaker.c.consecutive is 10: want less than minimum-number-of-calls, 10, where failure-rate-threshold is off: it could never be reached",
	} {
		assert.Equal(t, strings.Split(want, "\n"), problems(t, "resilience: {"+text+"}"), text)
	}
}

// What the program adds by code stands in no document: the message keeps the pipeline's path, and says it as Build does.
func TestWhatTheProgramAddsIsToldByThePipelinesPath(t *testing.T) {
	slow := breaker.MustNew(breaker.Config{ProbeLease: 1})
	assert.Equal(t, []string{"resilience.pipelines.p: guard lease is 1ns: want at least the 2s that the timeouts let a call last"},
		problems(t, "resilience: {circuit-breaker: {c: {}}, pipelines: {p: {timeout: 2s, circuit-breaker: c}}}",
			WithPipeline(func(_ string, b pipeline.Builder) pipeline.Builder { return b.With(slow) })))
	assert.Equal(t, []string{"resilience.pipelines.p: breaker lease is 1ns: want at least the 2s that the timeouts let a call last"},
		problems(t, "resilience: {pipelines: {p: {timeout: 2s}}}",
			WithPipeline(func(_ string, b pipeline.Builder) pipeline.Builder { return b.Breaker(slow) })))
}
