package httpx_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// made counts how often each host's pipeline was made.
type made struct {
	mu    sync.Mutex
	count map[string]int
}

func (m *made) pipeline(host string) *pipeline.Pipeline {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count == nil {
		m.count = map[string]int{}
	}
	m.count[host]++
	return pipeline.For(host).Breaker(breaker.MustNew(breaker.Config{Name: host, Consecutive: 1})).MustBuild()
}

func (m *made) of(host string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count[host]
}

func get(t *testing.T, tr http.RoundTripper, url string) error {
	t.Helper()
	_, err := tr.RoundTrip(request(t, "GET", url, nil))
	return err
}

// Each host has a pipeline of its own, under one name however it is spelled.
func TestPerHost(t *testing.T) {
	var m made
	base := tripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Hostname() == "bad" {
			return nil, errDown
		}
		return status(200, nil)(r)
	})
	tr := httpx.NewTransport(nil, base, httpx.PerHost(m.pipeline, 10))
	require.ErrorIs(t, get(t, tr, "http://bad"), errDown)
	require.ErrorIs(t, get(t, tr, "http://BAD:80/x"), breaker.ErrOpen, "one circuit for all spellings")
	require.ErrorIs(t, get(t, tr, "https://bad"), breaker.ErrOpen)
	require.ErrorIs(t, get(t, tr, "http://bad:"), breaker.ErrOpen, "an empty port is the default one")
	require.ErrorIs(t, get(t, tr, "http://bad:8080"), errDown, "another port is another host")
	require.NoError(t, get(t, tr, "http://good"))
	require.NoError(t, get(t, tr, "https://good:443"))
	require.Equal(t, map[string]int{"bad": 1, "bad:8080": 1, "good": 1}, m.count)
}

// For nil, the transport's own pipeline is used.
func TestPerHostFallsBackToTheTransportsOwn(t *testing.T) {
	guard := &rule{}
	own := pipeline.For("x").With(guard).MustBuild()
	tr := httpx.NewTransport(own, &answers{list: []func(*http.Request) (*http.Response, error){status(200, nil)}},
		httpx.PerHost(func(string) *pipeline.Pipeline { return nil }, 1))
	require.NoError(t, get(t, tr, "http://host"))
	require.Equal(t, []string{"returned"}, guard.verdicts())
}

// Bounded: the one without a call for the longest time goes; one with a call stays; without an idle one, a fresh pipeline
// serves that call and is not kept.
func TestPerHostIsBoundedAndEvictsOnlyIdleOnes(t *testing.T) {
	var m made
	inside, leave := make(chan string), make(chan struct{})
	base := tripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/hold" {
			inside <- r.URL.Host
			<-leave
		}
		return status(200, nil)(r)
	})
	tr := httpx.NewTransport(nil, base, httpx.PerHost(m.pipeline, 2))
	require.NoError(t, get(t, tr, "http://a"))
	require.NoError(t, get(t, tr, "http://b"))
	require.NoError(t, get(t, tr, "http://a"))
	require.NoError(t, get(t, tr, "http://c"), "drops b")
	require.NoError(t, get(t, tr, "http://a"))
	require.Equal(t, 1, m.of("a"))
	require.NoError(t, get(t, tr, "http://b"), "drops c")
	require.Equal(t, 2, m.of("b"))

	var wg sync.WaitGroup
	for _, host := range []string{"a", "b"} {
		wg.Go(func() { _ = get(t, tr, "http://"+host+"/hold") })
		<-inside
	}
	for n := 2; n < 4; n++ {
		require.NoError(t, get(t, tr, "http://c"))
		require.Equal(t, n, m.of("c"), "none idle: a fresh one each time")
	}
	close(leave)
	wg.Wait()
	require.NoError(t, get(t, tr, "http://a"))
	require.NoError(t, get(t, tr, "http://b"))
	require.Equal(t, 1, m.of("a"))
	require.Equal(t, 2, m.of("b"))
}

// Made once, however many ask at the same time; they wait as long as their context lives.
func TestPerHostIsMadeOnce(t *testing.T) {
	var m made
	making, finish := make(chan struct{}), make(chan struct{})
	tr := httpx.NewTransport(nil, &answers{list: []func(*http.Request) (*http.Response, error){status(200, nil)}},
		httpx.PerHost(func(host string) *pipeline.Pipeline {
			close(making)
			<-finish
			return m.pipeline(host)
		}, 1))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := get(t, tr, "http://host"); err != nil {
				t.Error(err)
			}
		})
	}
	<-making
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tr.RoundTrip(request(t, "GET", "http://host", nil).WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
	close(finish)
	wg.Wait()
	require.Equal(t, 1, m.of("host"))
}

// A make that panics leaves nothing behind: the next call of the host makes it.
func TestPerHostMakePanics(t *testing.T) {
	var m made
	panics := true
	tr := httpx.NewTransport(nil, &answers{list: []func(*http.Request) (*http.Response, error){status(200, nil)}},
		httpx.PerHost(func(host string) *pipeline.Pipeline {
			if panics {
				panic("make")
			}
			return m.pipeline(host)
		}, 1))
	b := body("x")
	require.PanicsWithValue(t, "make", func() { _, _ = tr.RoundTrip(request(t, "PUT", "http://host", b)) })
	require.EqualValues(t, 1, b.closes.Load())
	panics = false
	require.NoError(t, get(t, tr, "http://host"))
	require.Equal(t, 1, m.of("host"))
}

// Many hosts and few places, at the same time.
func TestPerHostConcurrently(t *testing.T) {
	var m made
	tr := httpx.NewTransport(nil, &answers{list: []func(*http.Request) (*http.Response, error){status(200, nil)}}, httpx.PerHost(m.pipeline, 3))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				if err := get(t, tr, fmt.Sprintf("http://h%d", (g+i)%7)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
