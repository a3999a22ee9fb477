package httpx_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// A client that repeats what may be repeated, and reuses its connection while doing so.
func ExampleNewTransport() {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()

	p := pipeline.For("greetings").
		Timeout(timeout.MustNew(timeout.Config{Limit: 20 * time.Second})). // the whole call, its body included
		Retry(retry.MustNew(retry.Config{Backoff: retry.Constant(time.Millisecond)})).
		Breaker(breaker.MustNew(breaker.Config{Name: "greetings"})).
		MustBuild()
	client := &http.Client{Transport: httpx.NewTransport(p, server.Client().Transport)}

	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	fmt.Println(string(text), "after", requests, "requests")
	// Output: hello after 3 requests
}

// A circuit for each host, and for no more than a thousand of them.
func ExamplePerHost() {
	client := &http.Client{Transport: httpx.NewTransport(nil, nil, httpx.PerHost(func(host string) *pipeline.Pipeline {
		return pipeline.For(host).Breaker(breaker.MustNew(breaker.Config{Name: host})).MustBuild()
	}, 1000))}
	defer client.CloseIdleConnections()
}

// A server that says when to come back.
func ExampleMiddleware() {
	p := pipeline.For("api").
		Timeout(timeout.MustNew(timeout.Config{Limit: 5 * time.Second})).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Name: "api", Rate: 1, Per: time.Hour})).
		MustBuild()
	handler := httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "done\n")
	}))

	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/orders", nil))
		fmt.Printf("%d, Retry-After %q: %s", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
	// Output:
	// 200, Retry-After "": done
	// 429, Retry-After "3600": {"title":"Too Many Requests","status":429,"detail":"The rate limit was reached. The request was not handled.","retry_after":3600}
}
