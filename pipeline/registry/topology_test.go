package registry

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// A URL is one server's; for Sentinel and Cluster the program gives a client, which goes before the URL and stays open. Two
// processes that share through it are one, and a reload keeps what they share.
func TestAClientForSentinelAndClusterIsShared(t *testing.T) {
	for name, start := range map[string]func() func() redis.UniversalClient{
		"Sentinel": func() func() redis.UniversalClient {
			g := redistest.StartSentinel(t)
			return func() redis.UniversalClient { return g.Client(t) }
		},
		"Cluster": func() func() redis.UniversalClient {
			c := redistest.StartCluster(t)
			return func() redis.UniversalClient { return c.Client(t) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := start()
			doc := fmt.Sprintf(fleetDocument, "127.0.0.1:1", "x") // nobody is there
			first := client()
			one, two := loaded(t, doc, WithClient(first)), loaded(t, doc, WithClient(client()))
			for _, r := range []*Registry{one, two} {
				reload(t, r, doc)
			}
			require.NoError(t, one.MustRateLimit("a").Wait(bg, 3))
			require.NoError(t, two.MustRateLimit("a").Wait(bg, 2))
			assert.ErrorIs(t, two.MustRateLimit("a").Wait(bg, 1), ratelimit.ErrLimited)
			require.NoError(t, one.MustRateLimit("quota").Wait(bg, 3))
			assert.ErrorIs(t, two.MustRateLimit("quota").Wait(bg, 1), ratelimit.ErrLimited)

			a, err := one.MustBulkhead("a").Acquire(bg)
			require.NoError(t, err)
			b, err := two.MustBulkhead("a").Acquire(bg)
			require.NoError(t, err)
			_, err = one.MustBulkhead("a").Acquire(bg)
			assert.ErrorIs(t, err, bulkhead.ErrFull)
			require.NoError(t, a.Settle(bg, leaf.Outcome{}))
			require.NoError(t, b.Settle(bg, leaf.Outcome{}))

			for range 2 {
				require.ErrorIs(t, one.MustPipeline("p").Run(bg, func(context.Context) error { return errDown }), errDown)
			}
			redistest.Eventually(t, "the other process learns that the circuit is open", func() bool {
				return two.MustPipeline("p").Run(bg, func(context.Context) error { return nil }) != nil
			})
			assert.Equal(t, breaker.Open, two.MustBreaker("a").State())

			require.NoError(t, one.Close())
			assert.NoError(t, first.Ping(bg).Err(), "the program's client stays open")
		})
	}
}

// What a document can say of the store, and what it is told where it cannot.
func TestTheStoresURLs(t *testing.T) {
	for _, url := range []string{"redis://h", "redis://u:p@h:1/2", "rediss://h:1", "unix:///tmp/redis.sock?db=3"} {
		assert.NotNil(t, loaded(t, "resilience: {store: {redis: '"+url+"'}, cooldown: {a: {shared: true}}}").store.client, url)
	}
	const want = ": want a URL such as redis://127.0.0.1:6379/0 (rediss for TLS, unix for a socket; Sentinel and Cluster need registry.WithClient)"
	const noScheme = "a text without a scheme"
	for url, shown := range map[string]string{
		"redis-sentinel://h:1/mymaster": "redis-sentinel://h:1/mymaster", "redis+cluster://h": "redis+cluster://h", "": `""`, "127.0.0.1:6379": noScheme,
		"redis://h:1?password=hush&foo=1": "redis://h:1?password=…&foo=…", "redis://u:hush@h:1/?foo=hush": "redis://…@h:1/?foo=…", "u:hush@h": noScheme, "redis://h:x/0?hush": "redis://…",
	} {
		assert.Equal(t, []string{"resilience.store.redis is " + shown + want}, problems(t, "resilience: {store: {redis: '"+url+"'}}"))
	}
	assert.Equal(t, []string{"resilience.store.redis is redis://h:1?min_idle_conns=…: want it without min_idle_conns, since loading never dials the store (use WithClient)"},
		problems(t, "resilience: {store: {redis: 'redis://h:1?min_idle_conns=3'}}"))
	assert.Equal(t, []string{"resilience.store.redis is " + noScheme + ": want a URL such as redis://127.0.0.1:6379/0" + " (rediss for TLS, unix for a socket; Sentinel and Cluster need registry.WithClient)"},
		problems(t, "resilience: {store: {redis: 5}}"))
	assert.Equal(t, []string{"resilience.store.redis is missing: want a URL such as redis://127.0.0.1:6379/0, or registry.WithClient, where instances are shared"},
		problems(t, "resilience: {cooldown: {a: {shared: true}}}"))
}

func TestARedissURLSpeaksTLS(t *testing.T) {
	s := redistest.Start(t, redistest.Options{TLS: true})
	r := loaded(t, fmt.Sprintf("resilience: {store: {redis: 'rediss://%s/0?skip_verify=true', timeout: 5s}, rate-limiter: {q: {max-tokens: 1, refill-rate: 0, shared: true, on-outage: fail-closed}}}", s.Addr))
	require.NoError(t, r.MustRateLimit("q").Wait(bg, 1))
	assert.ErrorIs(t, r.MustRateLimit("q").Wait(bg, 1), ratelimit.ErrLimited)
}
