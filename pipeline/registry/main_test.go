package registry

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	redistest.RunChild()
	redis.SetLogger(silent{}) // it tells each refused connection
	goleak.VerifyTestMain(m, goleak.Cleanup(redistest.Exit))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var (
	bg      = context.Background()
	errDown = errors.New("down")
)

// loaded is a registry that is closed with the test.
func loaded(t *testing.T, text string, opts ...Option) *Registry {
	t.Helper()
	r, err := LoadYAML(strings.NewReader(text), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// problems is the lines of the error that a document gets.
func problems(t *testing.T, text string, opts ...Option) []string {
	t.Helper()
	r, err := LoadYAML(strings.NewReader(text), opts...)
	if err == nil {
		_ = r.Close()
	}
	require.Error(t, err)
	return strings.Split(err.Error(), "\n")
}

// unavailable is a matcher that documents of the design name.
func unavailable() Option {
	return WithMatcher("unavailable", func(err error) bool { return errors.Is(err, errDown) })
}

// sample is the document in the design's section 8, to the letter.
const sample = `
resilience:
  enabled: true                       # false: every pipeline of the registry is a plain call (read once per call, never half-applied)
  store: { redis: "redis://127.0.0.1:6379/0", timeout: 50ms, prefix: fairlead }
  retry:
    payments: { max-attempts: 3, wait-duration: 250ms, backoff-multiplier: 2.0, max-wait: 5s, jitter: 100ms, retry-on: [timeout, unavailable] }
  circuit-breaker:
    payments: { failure-rate-threshold: 0.5, window-size: 100, minimum-number-of-calls: 20, wait-duration-in-open: 30s, half-open-max-calls: 3, half-open-probe-timeout: 30s, record-on: [all], idle-ttl: 720h, shared: true }
  rate-limiter:
    api: { max-tokens: 10, refill-rate: 10.0, timeout: 0, idle-ttl: 720h, shared: true }
  bulkhead:
    db: { max-concurrent: 10, max-wait: 0, permit-ttl: 60s, shared: true }
  time-limiter:
    payments: { timeout: 2s }
  pipelines:
    billing: { timeout: 5s, retry: payments, circuit-breaker: payments, rate-limiter: api, bulkhead: db, attempt-timeout: payments, breaker: outside-retry }
`

// failure is what a guard is told of a callback that failed.
var failure = leaf.Outcome{Verdict: leaf.Returned, Err: errDown}
