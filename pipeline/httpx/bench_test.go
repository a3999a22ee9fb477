package httpx_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// memory is a server in memory: what it costs is net/http's own part of a call. With a text it waits for the request's
// context, as the base of a program does: whoever limits the time then pays for a timer.
type memory struct{ text string }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{
		Status: "200 OK", StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: http.NoBody, Request: r,
	}
	if m.text != "" {
		select {
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		default:
		}
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(m.text)), int64(len(m.text))
	}
	return resp, nil
}

var text1k = strings.Repeat("0123456789abcdef", 64)

func guarded() pipeline.Builder {
	return pipeline.For("bench").Retry(soon()).
		Breaker(breaker.MustNew(breaker.Config{})).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 500_000, Per: time.Second, Burst: 1 << 40})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 64}))
}

func withTotal() pipeline.Builder   { return guarded().Timeout(limit("t", time.Minute)) }
func withAttempt() pipeline.Builder { return guarded().AttemptTimeout(limit("a", time.Second)) }
func withBoth() pipeline.Builder    { return withTotal().AttemptTimeout(limit("a", time.Second)) }

// call is one GET as programs make it, read to the end.
func call(tb testing.TB, client *http.Client, given time.Duration) {
	ctx := tb.Context()
	if given > 0 {
		with, cancel := context.WithTimeout(ctx, given)
		defer cancel()
		ctx = with
	}
	req, err := http.NewRequestWithContext(ctx, "GET", "http://host/path?a=b", nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	var buf [512]byte
	for err == nil {
		_, err = resp.Body.Read(buf[:])
	}
	_ = resp.Body.Close()
}

// BenchmarkClient compares each client with the way in which net/http alone does the same. The figure is the ratio of the
// fastest of many turns, which alternate: a busy machine slows both. Client.Timeout is net/http's own way to limit a call;
// ours tells the other side of it, too. Without a body nobody waits for the time, and ours has no timer then.
func BenchmarkClient(b *testing.B) {
	host := guarded().MustBuild()
	perHost := httpx.PerHost(func(string) *pipeline.Pipeline { return host }, 8)
	for body, base := range map[string]memory{"no body": {}, "1 KiB": {text1k}} {
		ours := func(p *pipeline.Pipeline, opts ...httpx.Option) *http.Client {
			return &http.Client{Transport: httpx.NewTransport(p, base, opts...)}
		}
		plain, timed := &http.Client{Transport: base}, &http.Client{Transport: base, Timeout: time.Minute}
		for _, row := range []struct {
			name        string
			ours, plain *http.Client
			given       time.Duration // the caller's context's
		}{
			{"guards, net_http", ours(host), plain, 0},
			{"guards per host, net_http", ours(nil, perHost), plain, 0},
			{"guards and a context's deadline, the same context", ours(host), plain, time.Minute},
			{"guards and a timeout, Client.Timeout", ours(withTotal().MustBuild()), timed, 0},
			{"guards and both timeouts, Client.Timeout", ours(withBoth().MustBuild()), timed, 0},
			{"guards and both timeouts, net_http", ours(withBoth().MustBuild()), plain, 0},
		} {
			b.Run(body+"/"+row.name, func(b *testing.B) {
				ourBest, plainBest := time.Hour, time.Hour
				for b.Loop() {
					ourBest = min(ourBest, turn(b, row.ours, row.given))
					plainBest = min(plainBest, turn(b, row.plain, row.given))
				}
				b.ReportMetric(float64(ourBest)/float64(plainBest), "×")
				b.ReportMetric(float64(ourBest)/turnCalls, "ns/call")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

const turnCalls = 50

func turn(b *testing.B, client *http.Client, given time.Duration) time.Duration {
	began := time.Now()
	for range turnCalls {
		call(b, client, given)
	}
	return time.Since(began)
}

// added is how many allocations tr makes beyond those of its base, under a context with so much time (0 = no deadline).
func added(t *testing.T, tr http.RoundTripper, base memory, given time.Duration) float64 {
	t.Helper()
	return allocs(t, tr, given) - allocs(t, base, given)
}

func allocs(t *testing.T, tr http.RoundTripper, given time.Duration) float64 {
	t.Helper()
	req := request(t, "GET", "http://host/path?a=b", nil)
	if given > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), given)
		defer cancel()
		req = req.WithContext(ctx)
	}
	req.Header.Set("Accept", "application/json")
	return testing.AllocsPerRun(200, func() {
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	})
}

// Guards add no allocation. A deadline adds a copy of the request (1) and of its header's map (2); a timeout its context (1
// each), a caller's deadline the text of the budget header (1): a timeout's is the same from call to call.
func TestAllocs(t *testing.T) {
	host := guarded().MustBuild()
	for name, row := range map[string]struct {
		tr    http.RoundTripper
		given time.Duration
		want  float64
	}{
		"guards":                {httpx.NewTransport(host, memory{}), 0, 0},
		"per host":              {httpx.NewTransport(nil, memory{}, httpx.PerHost(func(string) *pipeline.Pipeline { return host }, 8)), 0, 0},
		"a declaration":         {httpx.NewTransport(host, memory{}, httpx.Safety(declared)), 0, 0},
		"a caller's deadline":   {httpx.NewTransport(host, memory{}), time.Minute, 4},
		"a total timeout":       {httpx.NewTransport(withTotal().MustBuild(), memory{}), 0, 4},
		"an attempt timeout":    {httpx.NewTransport(withAttempt().MustBuild(), memory{}), 0, 4},
		"both timeouts":         {httpx.NewTransport(withBoth().MustBuild(), memory{}), 0, 5},
		"all three, ours first": {httpx.NewTransport(withBoth().MustBuild(), memory{}), time.Hour, 5},
	} {
		if got := added(t, row.tr, memory{}, row.given); got != row.want {
			t.Errorf("%s: %v allocations more than the base alone, want %v", name, got, row.want)
		}
	}
}

func declared(*http.Request) retry.Safety { return retry.Idempotent("key", time.Hour) }

// Without timeouts a body costs nothing, either: it is the base's own. With them, the whole call has fewer allocations than
// one through an http.Client with a Timeout, in spite of the guards and the header.
func TestAllocsOfABody(t *testing.T) {
	base := memory{text1k}
	if got := added(t, httpx.NewTransport(guarded().MustBuild(), base), base, 0); got != 0 {
		t.Errorf("guards: %v allocations more than the base alone, want none", got)
	}
	for _, base := range []memory{{}, {text1k}} {
		count := func(c *http.Client) float64 {
			return testing.AllocsPerRun(200, func() { call(t, c, 0) })
		}
		ours := count(&http.Client{Transport: httpx.NewTransport(withBoth().MustBuild(), base)})
		plain := count(&http.Client{Transport: base, Timeout: time.Minute})
		if ours >= plain {
			t.Errorf("%d bytes: %v allocations, and %v with a Client.Timeout", len(base.text), ours, plain)
		}
	}
}

// A server's request costs the pipeline's report (2) and the writer (1). A timeout adds its context and a copy of the request.
func TestAllocsOfMiddleware(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for name, row := range map[string]struct {
		p    *pipeline.Pipeline
		want float64
	}{"guards": {guarded().MustBuild(), 3}, "guards and a timeout": {withTotal().MustBuild(), 5}} {
		guarded, r := httpx.Middleware(row.p)(h), request(t, "GET", "/", nil)
		for what, w := range map[string]http.ResponseWriter{"a writer": nowhere{}, "a hijacker": hijacker{}} {
			if got := testing.AllocsPerRun(200, func() { guarded.ServeHTTP(w, r) }); got != row.want {
				t.Errorf("%s, %s: %v allocations, want %v", name, what, got, row.want)
			}
		}
	}
}

func BenchmarkMiddleware(b *testing.B) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for _, row := range []struct {
		name string
		h    http.Handler
	}{{"net/http", h}, {"guards", httpx.Middleware(guarded().MustBuild())(h)}, {"and a timeout", httpx.Middleware(withTotal().MustBuild())(h)}} {
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

// hijacker is one that lets its connection be taken over.
type hijacker struct {
	nowhere
	http.Hijacker
}
