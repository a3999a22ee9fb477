package httpx_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// memory is a server in memory: what it costs is net/http's own part of a call.
func memory() http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			Status: "200 OK", StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"text/plain"}}, Body: http.NoBody, Request: r,
		}, nil
	})
}

func guarded() pipeline.Builder {
	return pipeline.For("bench").Retry(soon()).
		Breaker(breaker.MustNew(breaker.Config{})).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 500_000, Per: time.Second, Burst: 1 << 40})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 64}))
}

func call(tb testing.TB, client *http.Client) {
	req, err := http.NewRequestWithContext(tb.Context(), "GET", "http://host/path?a=b", nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	_ = resp.Body.Close()
}

// clients are compared with the first.
func clients() []struct {
	name   string
	client *http.Client
} {
	one := func(p *pipeline.Pipeline, opts ...httpx.Option) *http.Client {
		return &http.Client{Transport: httpx.NewTransport(p, memory(), opts...)}
	}
	host := guarded().MustBuild()
	return []struct {
		name   string
		client *http.Client
	}{
		{"net/http", &http.Client{Transport: memory()}},
		{"guards", one(guarded().MustBuild())},
		{"guards per host", one(nil, httpx.PerHost(func(string) *pipeline.Pipeline { return host }, 8))},
		{"guards and a total timeout", one(guarded().Timeout(limit("t", time.Minute)).MustBuild())},
		{"guards and both timeouts", one(guarded().Timeout(limit("t", time.Minute)).AttemptTimeout(limit("a", time.Second)).MustBuild())},
	}
}

func BenchmarkClient(b *testing.B) {
	for _, c := range clients() {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b, c.client)
			}
		})
	}
}

// Guards add no allocation to net/http's own. A deadline does: its context, the copy of the request and of its header map,
// and the budget header's value.
func TestAllocs(t *testing.T) {
	var floor float64
	for i, most := range []float64{0, 0, 0, 7, 8} {
		c := clients()[i]
		got := testing.AllocsPerRun(200, func() { call(t, c.client) })
		if i == 0 {
			floor = got
		}
		if got > floor+most {
			t.Errorf("%s: %v allocations, net/http alone %v, want at most %v more", c.name, got, floor, most)
		}
	}
}

func BenchmarkMiddleware(b *testing.B) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for _, row := range []struct {
		name string
		h    http.Handler
	}{{"net/http", h}, {"guards", httpx.Middleware(guarded().MustBuild())(h)}} {
		b.Run(row.name, func(b *testing.B) {
			r, err := http.NewRequestWithContext(b.Context(), "GET", "/", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				row.h.ServeHTTP(nowhere{}, r)
			}
		})
	}
}

// nowhere is a writer that costs nothing.
type nowhere struct{}

func (nowhere) Header() http.Header         { return nil }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
