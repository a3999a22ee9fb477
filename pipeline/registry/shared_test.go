package registry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// fleetDocument is one instance of each kind that can be shared; the timeout is long, since nothing here is about it.
const fleetDocument = `
resilience:
  store: { redis: "redis://%s/0", timeout: 5s, prefix: "%s" }
  circuit-breaker: { a: { consecutive: 2, wait-duration-in-open: 1h, shared: true } }
  rate-limiter: { a: { max-tokens: 5, refill-rate: 1, per: 1h, shared: true }, quota: { max-tokens: 3, refill-rate: 0, shared: true } }
  bulkhead: { a: { max-concurrent: 2, shared: true } }
  cooldown: { a: { max: 1h, shared: true } }
  pipelines: { p: { circuit-breaker: a } }
`

// process is a registry of its own on one store.
func process(t *testing.T, s *redistest.Server, prefix string) *Registry {
	t.Helper()
	return loaded(t, fmt.Sprintf(fleetDocument, s.Addr, prefix))
}

func TestSharedInstancesAreOneForAllRegistriesOfAStore(t *testing.T) {
	s := redistest.Shared(t)
	prefix := s.Prefix(t)
	one, two := process(t, s, prefix), process(t, s, prefix)

	for range 3 {
		require.NoError(t, one.MustRateLimit("a").Wait(bg, 1))
		require.NoError(t, one.MustRateLimit("quota").Wait(bg, 1))
	}
	require.NoError(t, two.MustRateLimit("a").Wait(bg, 2))
	assert.ErrorIs(t, two.MustRateLimit("a").Wait(bg, 1), ratelimit.ErrLimited)
	assert.ErrorIs(t, two.MustRateLimit("quota").Wait(bg, 1), ratelimit.ErrLimited)

	first, err := one.MustBulkhead("a").Acquire(bg)
	require.NoError(t, err)
	second, err := two.MustBulkhead("a").Acquire(bg)
	require.NoError(t, err)
	_, err = one.MustBulkhead("a").Acquire(bg)
	assert.ErrorIs(t, err, bulkhead.ErrFull)
	require.NoError(t, first.Settle(bg, leaf.Outcome{}))
	require.NoError(t, second.Settle(bg, leaf.Outcome{}))

	one.MustCooldown("a").Hint(bg, time.Hour)
	assert.Positive(t, one.MustCooldown("a").Wait())
}

// The rule of section 13 that a process which joins an open circuit knows it, also where loading dials nobody.
func TestASharedCircuitReadsWhatTheFleetKnowsInItsFirstAcquire(t *testing.T) {
	s := redistest.Shared(t)
	prefix := s.Prefix(t)
	one, two := process(t, s, prefix), process(t, s, prefix)
	require.NoError(t, one.MustBreaker("a").ForceOpen(bg))

	assert.Equal(t, breaker.Closed, two.MustBreaker("a").State(), "nothing was asked yet")
	assert.NoError(t, two.MustBreaker("a").Peek(bg))
	ran := false
	err := two.MustPipeline("p").Run(bg, func(context.Context) error { ran = true; return nil })
	assert.ErrorIs(t, err, breaker.ErrOpen)
	assert.False(t, ran)
	assert.Equal(t, breaker.Open, two.MustBreaker("a").State())
	require.NoError(t, two.MustBreaker("a").Auto(bg))
	assert.Contains(t, two.Describe().String(), "circuit-breaker a  (closed")
}

func TestAReloadOfSharedInstancesKeepsWhatTheFleetKnows(t *testing.T) {
	s := redistest.Shared(t)
	r := process(t, s, s.Prefix(t))
	doc := fmt.Sprintf(fleetDocument, s.Addr, r.store.prefix)
	require.NoError(t, r.MustRateLimit("a").Wait(bg, 4))
	for range 2 {
		_ = r.MustPipeline("p").Run(bg, func(context.Context) error { return errDown })
	}
	changed := strings.NewReplacer("consecutive: 2", "consecutive: 3", "max-tokens: 5", "max-tokens: 4", "max-concurrent: 2", "max-concurrent: 3").Replace(doc)
	reload(t, r, changed)
	assert.ErrorIs(t, r.MustRateLimit("a").Wait(bg, 2), ratelimit.ErrLimited, "4 of 5 were spent")
	assert.Equal(t, 3, r.MustBreaker("a").(*lazyBreaker).Config().Consecutive)
	assert.Equal(t, 3, r.MustBreaker("a").(*lazyBreaker).real.Load().Config().Consecutive)

	client, before := r.store.client, r.Describe()
	for change, want := range map[string]string{
		"timeout: 5s|timeout: 4s": "resilience.store.timeout is 4s: want 5s, as it is while instances are shared: a reload cannot change it, a restart can",
		"/0\"|/1\"":               "resilience.store.redis is redis://" + s.Addr + "/1: want redis://" + s.Addr + "/0, as it is while instances are shared: a reload cannot change it, a restart can",
		"max-concurrent: 3, shared: true|max-concurrent: 3":     "resilience.bulkhead.a.shared is absent: want true, as it is: a reload cannot change it, a restart can",
		"max: 1h, shared: true|max: 1h, shared: false":          "resilience.cooldown.a.shared is false: want true, as it is: a reload cannot change it, a restart can",
		"wait-duration-in-open: 1h|idle-ttl: 1h":                "resilience.circuit-breaker.a.idle-ttl is 1h: want 720h0m0s, as it is: a reload cannot change it, a restart can",
		"max-concurrent: 3,|max-concurrent: 3, permit-ttl: 7s,": "resilience.bulkhead.a.permit-ttl is 7s: want 1m0s, as it is: a reload cannot change it, a restart can",
	} {
		from, to, _ := strings.Cut(change, "|")
		require.Contains(t, changed, from)
		assert.EqualError(t, r.Reload(strings.NewReader(strings.Replace(changed, from, to, 1))), want)
	}
	for i, is := range r.Describe().Instances {
		assert.Equal(t, before.Instances[i].Settings, is.Settings)
	}
	assert.Same(t, client, r.store.client)
}

func TestAnUnreachableStoreIsNoErrorOfLoadingAndNoStallOfTheFirstCall(t *testing.T) {
	r := loaded(t, strings.Replace(sample, "127.0.0.1:6379", "127.0.0.1:1", 1), unavailable())
	require.NoError(t, r.MustPipeline("billing").Run(bg, func(context.Context) error { return nil }), "fail-local")
}

// Nobody waits for the first read longer than its own context: a read that hangs is not the caller's.
func TestTheFirstAcquireOfASharedCircuitWaitsNoLongerThanItsContext(t *testing.T) {
	s := redistest.Start(t)
	r := loaded(t, fmt.Sprintf(fleetDocument, s.Addr, "x"))
	s.Pause(t)
	ctx, cancel := context.WithCancel(bg)
	got := make(chan error)
	go func() {
		_, err := r.MustBreaker("a").Acquire(ctx)
		got <- err
	}()
	cancel()
	assert.ErrorIs(t, <-got, context.Canceled)
	s.Resume(t)
	permit, err := r.MustBreaker("a").Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, permit.Settle(bg, leaf.Outcome{}))
}

// Its defaults written out would be invalid: consecutive is 5, and minimum-number-of-calls is 3.
func TestASharedCircuitIsMadeOfWhatWasConfigured(t *testing.T) {
	s := redistest.Shared(t)
	doc := "resilience: {store: {redis: 'redis://%s', timeout: 5s, prefix: %s}, circuit-breaker: {a: {failure-rate-threshold: off, failure-threshold: 2, minimum-number-of-calls: 3, shared: true}}, pipelines: {p: {circuit-breaker: a}}}"
	r := loaded(t, fmt.Sprintf(doc, s.Addr, s.Prefix(t)))
	for range 2 {
		require.ErrorIs(t, r.MustPipeline("p").Run(bg, func(context.Context) error { return errDown }), errDown)
	}
	redistest.Eventually(t, "the circuit opens", func() bool { return r.MustBreaker("a").State() == breaker.Open })
}

// Updates that come while the first Acquire has the circuit made are not lost.
func TestAnUpdateWhileASharedCircuitIsMadeIsNotLost(t *testing.T) {
	s := redistest.Shared(t)
	for range 20 {
		r := process(t, s, s.Prefix(t))
		doc := fmt.Sprintf(fleetDocument, s.Addr, r.store.prefix)
		asked := make(chan error)
		go func() {
			permit, err := r.MustBreaker("a").Acquire(bg)
			_ = permit.Settle(bg, leaf.Outcome{})
			asked <- err
		}()
		reload(t, r, strings.Replace(doc, "consecutive: 2", "consecutive: 4", 1))
		require.NoError(t, <-asked)
		assert.Equal(t, 4, r.MustBreaker("a").(*lazyBreaker).real.Load().Config().Consecutive)
	}
}

func TestACircuitThatWasNeverUsedIsNotMadeAfterClose(t *testing.T) {
	s := redistest.Shared(t)
	r := process(t, s, s.Prefix(t))
	require.NoError(t, r.Close())
	permit, err := r.MustBreaker("a").Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, permit.Settle(bg, leaf.Outcome{}))
	assert.Nil(t, r.MustBreaker("a").(*lazyBreaker).real.Load())
}

func TestWithClientIsTheProgramsAndStaysOpen(t *testing.T) {
	s := redistest.Shared(t)
	client := s.Client(t)
	r, err := LoadMap(map[string]any{"resilience": map[string]any{
		"store":        map[string]any{"prefix": s.Prefix(t), "timeout": 5},
		"rate-limiter": map[string]any{"a": map[string]any{"refill-rate": 1, "shared": true}},
	}}, WithClient(client))
	require.NoError(t, err)
	require.NoError(t, r.MustRateLimit("a").Wait(bg, 1))
	require.NoError(t, r.Close())
	assert.NoError(t, client.Ping(bg).Err())
}

func TestIdleTTLNullZeroAndNegativeMeanNever(t *testing.T) {
	for _, never := range []string{"null", "0", "-5s", "-1", "0s"} {
		r := loaded(t, "resilience: {store: {redis: 'redis://127.0.0.1:1'}, circuit-breaker: {a: {shared: true, idle-ttl: "+never+"}}, rate-limiter: {q: {max-tokens: 1, refill-rate: 0, shared: true, idle-ttl: "+never+"}}}")
		assert.Equal(t, time.Duration(-1), r.MustBreaker("a").(*lazyBreaker).opts.IdleTTL, never)
		assert.Contains(t, r.Describe().String(), "idle-ttl                 never\n", never)
	}
	assert.Equal(t, []string{"resilience.circuit-breaker.a.idle-ttl is 5ns: want 1ms or more, or 0 (never)"},
		problems(t, "resilience: {circuit-breaker: {a: {idle-ttl: 5ns}}}"))
	assert.Equal(t, []string{"resilience.circuit-breaker.a.idle-ttl is --5s: want a duration such as 720h, or 0, a negative one or null (never)"},
		problems(t, "resilience: {circuit-breaker: {a: {idle-ttl: --5s}}}"))
}

func TestALeaseShorterThanThePipelinesTimeIsAnError(t *testing.T) {
	assert.Equal(t, []string{"resilience.bulkhead.a.permit-ttl is 1s: want at least the 5s that the timeouts let a call last (for resilience.pipelines.p)"},
		problems(t, "resilience: {store: {redis: 'redis://127.0.0.1:1'}, bulkhead: {a: {max-concurrent: 1, permit-ttl: 1s, shared: true}}, pipelines: {p: {timeout: 5s, bulkhead: a}}}"))
}

func TestHalfOpenProbeTimeoutZeroIsNoLease(t *testing.T) {
	r := loaded(t, "resilience: {circuit-breaker: {a: {half-open-probe-timeout: 0}, b: {half-open-probe-timeout: 7s}}}")
	assert.Equal(t, time.Duration(breaker.NoLease), r.MustBreaker("a").(*breaker.Breaker).Config().ProbeLease)
	assert.Equal(t, 7*time.Second, r.MustBreaker("b").(*breaker.Breaker).Config().ProbeLease)
}
