package httpx_test

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// FuzzMiddleware: whatever headers come, there is one answer, no panic, no slot left, and no deadline beyond the header's.
func FuzzMiddleware(f *testing.F) {
	for _, v := range []string{"", "0", "5000", "-1", "1e9", "99999999999999999999", "\x00", "٣", " 5", "5,6", strings.Repeat("9", 5000)} {
		f.Add(v, "Retry-After", v, 503)
		f.Add(v, "Content-Length", "7", 200)
		f.Add(v, "X-Request-Budget-Ms", "1", 0)
	}
	f.Fuzz(func(t *testing.T, value, name, other string, code int) {
		slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		p := pipeline.For("x").Timeout(limit("t", time.Minute)).Retry(soon()).Bulkhead(slots).MustBuild()
		ran := false
		h := httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ran = true
			if left, ok := budget.Left(r.Context(), nil); !ok || left > time.Minute {
				t.Errorf("%v left", left)
			}
			w.Header()[name] = []string{other}
			if code >= 100 && code <= 599 && code != 101 {
				w.WriteHeader(code)
			}
		}))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header[budget.Header] = []string{value}
		r.Header.Add(name, other)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if slots.InUse() != 0 {
			t.Fatal("a slot is left")
		}
		if !ran && w.Code != http.StatusGatewayTimeout {
			t.Fatalf("not run, and status %d", w.Code)
		}
	})
}

// FuzzTransport: a server that answers garbage gives errors or responses, within the deadline, and leaves nothing open.
func FuzzTransport(f *testing.F) {
	log.SetOutput(io.Discard) // net/http's remarks on what the server sends
	for _, answer := range []string{
		"", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nshort",
		"HTTP/1.1 503 Busy\r\nContent-Length: 1\r\n\r\ntoo long", "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "HTTP/1.1 429 Slow\r\nRetry-After: 9999999999999999999\r\n\r\n",
		"HTTP/1.1 429 Slow\r\nRetry-After: 0\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\nraw",
		"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/9.9 999 ?\r\n\r\n", "HTTP/1.1 503 Busy\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\n", "\x16\x03\x01",
		"HTTP/1.1 500 E\r\n\r\nuntil the end",
	} {
		f.Add([]byte(answer), true)
		f.Add([]byte(answer), false)
	}
	f.Fuzz(func(t *testing.T, answer []byte, hang bool) {
		base := &http.Transport{DialContext: garbage(answer, hang)}
		defer base.CloseIdleConnections()
		p := pipeline.For("x").Timeout(limit("t", 300*time.Millisecond)).AttemptTimeout(limit("a", 20*time.Millisecond)).
			Retry(soon()).MustBuild()
		began := time.Now()
		resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		if (resp == nil) == (err == nil) {
			t.Fatalf("a response %v and an error %v", resp, err)
		}
		if resp != nil {
			if resp.StatusCode != http.StatusSwitchingProtocols {
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			_ = resp.Body.Close()
		}
		if took := time.Since(began); took > 10*time.Second { // a machine may be slow; a hang is for ever
			t.Fatalf("took %v", took)
		}
	})
}

// garbage dials a server in memory that reads the request, answers, and then hangs or closes.
func garbage(answer []byte, hang bool) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
				return
			}
			if _, err := server.Write(answer); err == nil && hang {
				_, _ = io.Copy(io.Discard, server) // until the client closes
			}
		}()
		return client, nil
	}
}

// Headers without an end are cut by the transport's own limit or the deadline.
func TestEndlessHeaders(t *testing.T) {
	base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
				return
			}
			_, err := io.WriteString(server, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(server, "X: y\r\n")
			}
		}()
		return client, nil
	}}
	defer base.CloseIdleConnections()
	p := pipeline.For("x").Timeout(limit("t", 200*time.Millisecond)).Retry(soon()).MustBuild()
	_, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
	if err == nil {
		t.Fatal("no error")
	}
}
