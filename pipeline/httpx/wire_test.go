package httpx_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// An answer that comes while the request is still being sent, or a connection that breaks over it: the upload is sent again
// whole, and every body is closed.
func TestAnswerBeforeTheUploadEnds(t *testing.T) {
	const size = 4 << 20
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			var s *site
			s = serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
				if s.requests.Load() < 3 {
					w.WriteHeader(503) // nothing is read
					return
				}
				n, _ := io.Copy(io.Discard, r.Body)
				if n != size {
					t.Errorf("%d bytes", n)
				}
			})
			var bodies []*watched
			again := func() (io.ReadCloser, error) {
				bodies = append(bodies, &watched{Reader: bytes.NewReader(make([]byte, size))})
				return bodies[len(bodies)-1], nil
			}
			own, _ := again()
			req := request(t, "PUT", s.URL, own)
			req.ContentLength, req.GetBody = size, again
			resp, err := s.client(full()).Do(req)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.Empty(t, text(t, resp))
			for _, b := range bodies {
				eventually(t, func() bool { return b.closes.Load() > 0 }, "closed")
			}
		})
	}
}

// A redirect that keeps the body leads to a server that is down for a while: each request that arrives has the whole body.
func TestRedirectedUploadIsRetried(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			s := serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
				sent, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				got = append(got, r.URL.Path+" "+string(sent))
				switch {
				case r.URL.Path == "/":
					http.Redirect(w, r, "/target", http.StatusPermanentRedirect)
				case len(got) < 4:
					w.WriteHeader(503)
				}
			})
			req := request(t, "POST", s.URL, strings.NewReader("hello"))
			req.Header.Set("Idempotency-Key", "k")
			resp, err := s.client(full()).Do(req)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.Empty(t, text(t, resp))
			require.Equal(t, []string{"/ hello", "/target hello", "/target hello", "/target hello"}, got)
			require.EqualValues(t, 1, s.connections.Load())
		})
	}
}

// Answers without a body, HEAD's among them, whatever length they name: retried on one connection, with nothing to drain, and
// the attempt's context is over as soon as the last one is here.
func TestRetriesWithoutABody(t *testing.T) {
	for name, h2 := range protocols {
		for _, method := range []string{"HEAD", "GET"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				var s *site
				s = serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
					if method == "HEAD" {
						w.Header().Set("Content-Length", "1000000")
					}
					if s.requests.Load() < 3 {
						w.WriteHeader(503)
						return
					}
					if method == "GET" {
						w.WriteHeader(204)
					}
				})
				base := &spy{RoundTripper: s.base}
				resp, err := httpx.NewTransport(full(), base).RoundTrip(request(t, method, s.URL, nil))
				require.NoError(t, err)
				require.Less(t, resp.StatusCode, 300)
				require.Len(t, base.seen, 3)
				require.ErrorIs(t, base.seen[2].Err(), context.Canceled)
				require.Empty(t, text(t, resp))
				require.EqualValues(t, 1, s.connections.Load())

				s.requests.Store(-10) // and where none succeeds, the last one is the caller's
				resp, err = httpx.NewTransport(full(), s.base).RoundTrip(request(t, method, s.URL, nil))
				require.NoError(t, err)
				require.Equal(t, 503, resp.StatusCode)
				require.Empty(t, text(t, resp))
			})
		}
	}
}

// A server that takes its connection away: politely (Connection: close, which is GOAWAY in HTTP/2), or in the middle of an
// exchange. The call goes on with another one.
func TestConnectionsThatEnd(t *testing.T) {
	for name, h2 := range protocols {
		for how, politely := range map[string]bool{"politely": true, "torn": false} {
			t.Run(name+"/"+how, func(t *testing.T) {
				var s *site
				s = serve(t, h2, func(w http.ResponseWriter, _ *http.Request) {
					switch {
					case s.requests.Load() > 2:
						_, _ = io.WriteString(w, "ok")
					case politely:
						w.Header().Set("Connection", "close")
						w.WriteHeader(503)
						_, _ = io.WriteString(w, "busy")
					default:
						s.CloseClientConnections()
					}
				})
				resp, err := s.client(full()).Get(s.URL)
				require.NoError(t, err)
				require.Equal(t, "ok", text(t, resp))
				require.EqualValues(t, 3, s.connections.Load())
			})
		}
	}
}

// Reading, closing and the end of the attempt's time may come together, from several goroutines.
func TestBodyReadClosedAndExpiredAtOnce(t *testing.T) {
	p := pipeline.For("x").AttemptTimeout(limit("a", time.Millisecond)).MustBuild()
	for range 200 {
		r, w := io.Pipe()
		rc := &watched{Reader: r}
		var attempt context.Context
		base := tripper(func(r *http.Request) (*http.Response, error) {
			attempt = r.Context()
			context.AfterFunc(attempt, func() { _ = w.CloseWithError(context.Cause(attempt)) }) // as net/http does
			return status(200, rc)(r)
		})
		resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			for err := error(nil); err == nil; {
				_, err = resp.Body.Read(make([]byte, 16))
			}
		})
		wg.Go(func() { _, _ = io.WriteString(w, "part") })
		wg.Go(func() {
			<-time.After(time.Millisecond)
			_ = resp.Body.Close()
		})
		wg.Wait()
		require.Error(t, attempt.Err())
		require.NotZero(t, rc.closes.Load())
		require.NoError(t, w.Close())
	}
}

// A connection that was switched to another protocol is the caller's: the attempt's time no longer cuts it.
func TestSwitchedConnectionOutlivesTheTimeout(t *testing.T) {
	s := serve(t, false, echoUpgraded)
	p := pipeline.For("x").AttemptTimeout(limit("a", 500*time.Millisecond)).MustBuild()
	req := request(t, "GET", s.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	base := &spy{RoundTripper: s.base}
	resp, err := httpx.NewTransport(p, base).RoundTrip(req)
	require.NoError(t, err)
	<-base.seen[0].Done()
	_, err = io.WriteString(resp.Body.(io.Writer), "hello")
	require.NoError(t, err)
	require.NoError(t, resp.Body.(interface{ CloseWrite() error }).CloseWrite())
	require.Equal(t, "echo hello", text(t, resp))
}

// A response that no retry follows is never touched, however long the guards take to hear of it.
func TestNothingIsReadAheadOfAResponseThatIsFinal(t *testing.T) {
	first := body("busy")
	slow := make(chan struct{})
	settled := settles(func() { <-slow })
	time.AfterFunc(100*time.Millisecond, func() { close(slow) })
	base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
	resp, err := httpx.NewTransport(pipeline.For("x").Retry(soon()).With(settled).MustBuild(), base).RoundTrip(request(t, "POST", "http://host", nil))
	require.NoError(t, err)
	require.Zero(t, first.reads.Load())
	require.Equal(t, "busy", text(t, resp))
}
