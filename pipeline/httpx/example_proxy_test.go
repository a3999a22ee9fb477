package httpx_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
	"github.com/fairlead/fairlead/rejection"
)

// A reverse proxy that says what is wrong, and when to come back: by itself it answers every error with a 502. rejection.Status
// is 503 for an open circuit, 504 for a time that is over, and 0 for everything else. What is uploaded goes out once: a proxy
// cannot read it again. What has no body is repeated.
func ExampleNewTransport_reverseProxy() {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("sent:", r.Method)
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer behind.Close()
	target, err := url.Parse(behind.URL)
	if err != nil {
		panic(err)
	}

	p := pipeline.For("orders").
		Timeout(timeout.MustNew(timeout.Config{Limit: time.Second})).
		Retry(retry.MustNew(retry.Config{MaxAttempts: 2, Backoff: retry.Immediate})).
		Breaker(breaker.MustNew(breaker.Config{Name: "orders", Consecutive: 4, OpenFor: 30 * time.Second})).
		MustBuild()
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: httpx.NewTransport(p, behind.Client().Transport),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			status := rejection.Status(err)
			if status == 0 {
				status = http.StatusBadGateway
			}
			rejection.SetHeader(w.Header(), err) // Retry-After, where the refusal names a wait
			http.Error(w, http.StatusText(status), status)
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}

	send := func(method, path, body string) {
		w := httptest.NewRecorder()
		proxy.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		fmt.Printf("%s: %d, Retry-After %q\n", method, w.Code, w.Header().Get("Retry-After"))
	}
	send("GET", "/slow", "")
	send("PUT", "/orders/7", "two books")
	send("GET", "/orders/7", "")
	send("GET", "/orders/7", "")
	// Output:
	// sent: GET
	// GET: 504, Retry-After ""
	// sent: PUT
	// PUT: 503, Retry-After ""
	// sent: GET
	// sent: GET
	// GET: 503, Retry-After ""
	// GET: 503, Retry-After "30"
}
