package httpx_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

var errDown = errors.New("down")

// soon is a retry whose delays nobody notices.
func soon(change ...func(*retry.Config)) *retry.Retry {
	cfg := retry.Config{Backoff: retry.Constant(time.Millisecond), Jitter: retry.None, NoBudget: true}
	for _, f := range change {
		f(&cfg)
	}
	return retry.MustNew(cfg)
}

func retrying(change ...func(*retry.Config)) *pipeline.Pipeline {
	return pipeline.For("client").Retry(soon(change...)).MustBuild()
}

func limit(name string, d time.Duration) *timeout.Timeout {
	return timeout.MustNew(timeout.Config{Name: name, Limit: d})
}

// protocols are run over by whatever touches connections.
var protocols = map[string]bool{"HTTP/1.1": false, "HTTP/2": true}

// site is a real server on loopback that counts what it sees.
type site struct {
	*httptest.Server
	connections, requests atomic.Int64
	base                  *http.Transport
}

func serve(t *testing.T, h2 bool, h http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		h(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	if h2 {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	s.base = &http.Transport{ForceAttemptHTTP2: h2}
	if h2 {
		pool := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		s.base.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	t.Cleanup(func() {
		s.base.CloseIdleConnections()
		s.Close()
	})
	return s
}

// client is an http.Client through p to the site.
func (s *site) client(p *pipeline.Pipeline, opts ...httpx.Option) *http.Client {
	return &http.Client{Transport: httpx.NewTransport(p, s.base, opts...)}
}

func request(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	return req
}

// text reads and closes.
func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(all)
}

// tripper is an in-memory base.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answers is a base that gives one answer after the other, and the last one for ever. It reads and closes what is sent,
// as a RoundTripper must.
type answers struct {
	mu   sync.Mutex
	list []func(*http.Request) (*http.Response, error)
	seen []*http.Request
	sent []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	a.mu.Lock()
	answer := a.list[min(len(a.seen), len(a.list)-1)]
	a.seen = append(a.seen, r)
	a.sent = append(a.sent, string(sent))
	a.mu.Unlock()
	return answer(r)
}

func (a *answers) runs() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen)
}

// status answers with a body that is watched.
func status(code int, b *watched, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Add(header[i], header[i+1])
		}
		resp := &http.Response{StatusCode: code, Header: h, Request: r, ContentLength: -1, Body: http.NoBody}
		if b != nil {
			resp.Body = b
		}
		return resp, nil
	}
}

func fails(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// watched is a body that notes what happens to it.
type watched struct {
	io.Reader
	reads, bytes, closes atomic.Int64
}

func body(s string) *watched { return &watched{Reader: strings.NewReader(s)} }

func (w *watched) Read(p []byte) (int, error) {
	w.reads.Add(1)
	n, err := w.Reader.Read(p)
	w.bytes.Add(int64(n))
	return n, err
}

func (w *watched) Close() error {
	w.closes.Add(1)
	if c, ok := w.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// rule is a guard that does what a test says and notes what it is told.
type rule struct {
	acquire func(n int) error
	mu      sync.Mutex
	asked   int
	told    []leaf.Outcome
}

func (r *rule) Acquire(context.Context) (leaf.Permit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.acquire != nil {
		if err := r.acquire(r.asked); err != nil {
			return leaf.Permit{}, err
		}
	}
	return leaf.NewPermit(r, 0), nil
}

func (r *rule) Settle(_ context.Context, _ uint64, o leaf.Outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, o)
	return nil
}

// verdicts is what it was told, a failure that was Returned as "failed".
func (r *rule) verdicts() (vs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.told {
		switch {
		case o.Verdict == leaf.Returned && o.Err != nil:
			vs = append(vs, "failed")
		default:
			vs = append(vs, o.Verdict.String())
		}
	}
	return vs
}

// closed is a refusal.
type closed struct{ wait time.Duration }

func (closed) Error() string                       { return "closed" }
func (closed) Rejected() bool                      { return true }
func (c closed) RetryAfter() (time.Duration, bool) { return c.wait, c.wait > 0 }

// eventually waits for a condition that another goroutine makes true.
func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	require.Eventually(t, ok, 10*time.Second, time.Millisecond, what)
}

// settles is a guard that does something when it is told.
type settles func()

func (s settles) Acquire(context.Context) (leaf.Permit, error) { return leaf.NewPermit(s, 0), nil }

func (s settles) Settle(context.Context, uint64, leaf.Outcome) error { s(); return nil }

func runtimeGoexit() { runtime.Goexit() }

var nilClock *clockwork.FakeClock
