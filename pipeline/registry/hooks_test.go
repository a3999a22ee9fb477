package registry

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/pipeline"
)

// A matcher that panics, or ends the goroutine, takes nothing along: every permit is settled, and the registry goes on.
func TestAMatcherThatPanicsLeaksNothing(t *testing.T) {
	for name, fault := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			doc := "resilience: {retry: {a: {retry-on: faulty, wait-duration: 0}}, circuit-breaker: {a: {record-on: faulty, consecutive: 2}}, bulkhead: {a: {max-concurrent: 1}}, pipelines: {p: {%s, bulkhead: a}}}"
			r := loaded(t, strings.Replace(doc, "%s", "retry: a", 1), WithMatcher("faulty", func(error) bool { fault(); return true }))
			p := r.MustPipeline("p")
			call := func() (panicked any, returned bool) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { panicked = recover() }()
					_ = p.Run(bg, func(context.Context) error { return errDown })
					returned = true
				}()
				<-done
				return panicked, returned
			}
			panicked, returned := call()
			assert.False(t, returned, "it goes on unwinding on the caller's goroutine")
			assert.Equal(t, name == "panic", panicked != nil)
			assert.Zero(t, r.bulkheads.now["a"].item.Inspect().Gauges[0].Value)
			reload(t, r, strings.Replace(doc, "%s", "circuit-breaker: a", 1))
			for range 2 {
				call()
			}
			assert.Equal(t, breaker.Open, r.MustBreaker("a").State(), "to the circuit it is a failure")
			assert.Zero(t, r.bulkheads.now["a"].item.Inspect().Gauges[0].Value)
		})
	}
}

// A hook of the program's that panics or ends the goroutine during a reload holds no lock afterwards.
func TestAHookThatPanicsDoesNotWedgeTheRegistry(t *testing.T) {
	for name, fault := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		for _, at := range []string{"WithPipeline", "WithOnReload"} {
			armed := ""
			do := func(where string) {
				if where == armed {
					fault()
				}
			}
			r := loaded(t, attempts(2), WithOnReload(func(error) { do("WithOnReload") }),
				WithPipeline(func(_ string, b pipeline.Builder) pipeline.Builder { do("WithPipeline"); return b }))
			armed = at
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = r.Reload(strings.NewReader("resilience: {retry: {a: {max-attempts: 5}}, pipelines: {p: {retry: a}}}"))
			}()
			<-done
			armed = ""
			require.Equal(t, map[string]int{"WithPipeline": 2, "WithOnReload": 5}[at], r.MustRetry("a").Config().MaxAttempts, "%s in %s", name, at)
			reload(t, r, attempts(3))
			require.Equal(t, 3, r.MustRetry("a").Config().MaxAttempts)
		}
	}
}

// The vocabulary of the documents that the project grew from, with the values of their samples.
func TestTheSeedsVocabularyLoads(t *testing.T) {
	r := loaded(t, `
resilience:
  retry:
    default: { max-attempts: 3 }
    aggressive: { max-attempts: 5, wait-duration: '250ms', backoff-multiplier: 2.0, max-wait: null, jitter: 0.0 }
  circuit-breaker:
    payments: { failure-threshold: 5, failure-rate-threshold: null, window-size: 10, minimum-number-of-calls: 5, wait-duration-in-open: '30s', half-open-max-calls: 1, half-open-probe-timeout: '30s', idle-ttl: '720h' }
  rate-limiter:
    api: { max-tokens: 10, refill-rate: 10.0, timeout: '100ms', idle-ttl: 720h }
    quota: { max-tokens: 3, refill-rate: 0, idle-ttl: null }
  bulkhead:
    db: { max-concurrent: 20, max-wait: '50ms', permit-ttl: '30s' }
  time-limiter:
    payments: { timeout: '2s' }
    iso: { timeout: PT5M }
`)
	cfg := r.breakers.now["payments"].item.Config()
	assert.Equal(t, []int{5, 5, 1}, []int{cfg.FailureCount, cfg.MinCalls, cfg.Probes})
	assert.Equal(t, []time.Duration{30 * time.Second, 30 * time.Second}, []time.Duration{cfg.OpenFor, cfg.ProbeLease})
	assert.Equal(t, 250*time.Millisecond, r.MustRetry("aggressive").Config().Backoff(1))
	assert.Equal(t, 100*time.Millisecond, r.limits.now["api"].item.Config().MaxWait)
	assert.Equal(t, 50*time.Millisecond, r.bulkheads.now["db"].item.Config().MaxWait)
	assert.Equal(t, 5*time.Minute, r.MustTimeout("iso").Config().Limit)
	assert.EqualError(t, second(r.Retry("missing")), "no resilience [retry] instance named [missing]; available: aggressive, default")
}

// burstingGuard is a guard of the program's that ends what asks it: a pipeline that is built does.
type burstingGuard struct {
	leaf.Guard
	fault func()
}

func (g burstingGuard) Lease() time.Duration { g.fault(); return 0 }

// A client that was opened for a document which then did not come into force is closed, whatever ended it.
func TestAHookThatPanicsLeavesNoClientBehind(t *testing.T) {
	for name, fault := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			r := loaded(t, attempts(2), WithPipeline(func(_ string, b pipeline.Builder) pipeline.Builder {
				return b.With(burstingGuard{leaf.Shadow(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1}), func(context.Context, error) {}), fault})
			}))
			var opened redis.UniversalClient
			watched := *r.bulkheads.kind
			watched.make = func(e *env, s *slotsSpec) (slots, error) { opened = e.store.client; return slotsKind.make(e, s) }
			r.bulkheads.kind = &watched
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				_ = r.Reload(strings.NewReader("resilience: {store: {redis: 'redis://127.0.0.1:1'}, bulkhead: {db: {max-concurrent: 1, shared: true}}, pipelines: {p: {timeout: 2s, attempt-timeout: 1s}}}"))
			}()
			<-done
			require.NotNil(t, opened)
			require.ErrorIs(t, opened.Ping(bg).Err(), redis.ErrClosed)
			reload(t, r, attempts(3))
			require.Equal(t, 3, r.MustRetry("a").Config().MaxAttempts)
		})
	}
}
