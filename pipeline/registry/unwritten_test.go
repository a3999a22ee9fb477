package registry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What is written never gives way to a default that nobody wrote: the document has to say both.
func TestWhatIsWrittenNeverGivesWayToADefault(t *testing.T) {
	for text, want := range map[string]string{
		"retry: {a: {wait-duration: 30s}}":                                  "resilience.retry.a.wait-duration is 30s: want at most 20s, which max-wait is by default, or a max-wait as well",
		"retry: {a: {wait-duration: 20.000000001}}":                         "resilience.retry.a.wait-duration is 20.000000001: want at most 20s, which max-wait is by default, or a max-wait as well",
		"retry: {a: {jitter: 25}}":                                          "resilience.retry.a.jitter is 25: want at most 20s, which max-wait is by default, or a max-wait as well",
		"retry: {a: {jitter: 6s, max-wait: 5s}}":                            "resilience.retry.a.jitter is 6s: want at most max-wait, 5s",
		"retry: {a: {max-wait: 50ms}}":                                      "resilience.retry.a.max-wait is 50ms: want at least wait-duration, 100ms",
		"circuit-breaker: {a: {max-open-for: 4s}}":                          "resilience.circuit-breaker.a.max-open-for is 4s: want at least wait-duration-in-open, 5s",
		"circuit-breaker: {a: {slow-rate: 0.4}}":                            "resilience.circuit-breaker.a.slow-rate is 0.4: want none without slow-call",
		"circuit-breaker: {a: {consecutive: 20}}":                           "resilience.circuit-breaker.a.consecutive is 20: want less than minimum-number-of-calls, which is 20 by default: it could never be reached",
		"circuit-breaker: {a: {consecutive: 9, window-size: 9}}":            "resilience.circuit-breaker.a.consecutive is 9: want less than minimum-number-of-calls, which is 9 by default: it could never be reached",
		"circuit-breaker: {a: {open-growth: 2, wait-duration-in-open: 5m}}": "resilience.circuit-breaker.a.open-growth is 2: want a max-open-for as well, above wait-duration-in-open: by default it is 5m0s, and nothing would grow",
		"retry-budget: {a: {capacity: 5, per: 2s}}":                         "resilience.retry-budget.a.per is 2s: want a refill as well: by default it is 0, and nothing flows in",
		"bulkhead: {a: {max-concurrent: 1, max-queue: 3}}":                  "resilience.bulkhead.a.max-queue is 3: want none without max-wait, or a max-wait: nobody would ever be in the queue",
		"rate-limiter: {a: {refill-rate: 2, prefetch: 3}}":                  "resilience.rate-limiter.a.prefetch is 3: want 0 (off) to 2 (max-tokens)",
	} {
		assert.Equal(t, []string{want}, problems(t, "resilience: {"+text+"}"), text)
	}
	r := loaded(t, `
resilience:
  retry:
    edge: { wait-duration: 20s, jitter: 20s }
    long: { wait-duration: 30s, jitter: 25, max-wait: 1m }
    written: { wait-duration: 20s, max-wait: 20s }
  circuit-breaker:
    grows: { open-growth: 2, wait-duration-in-open: 5m, max-open-for: 20m }
    inside: { open-growth: 2, wait-duration-in-open: 4m59s }
    both: { consecutive: 20, minimum-number-of-calls: 20 }
    still: { open-growth: 1, wait-duration-in-open: 1h }
  retry-budget: { a: { capacity: 5, refill: 1, per: 2s } }
`)
	assert.Equal(t, 30*time.Second, r.MustRetry("long").Config().Backoff(1))
}
