package httpx_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// A response is taken while a read of it is under way, and that read brings its trailers: the caller, who looks at them meanwhile
// as httputil.ReverseProxy does, has a response of its own, with the trailers at EOF.
func TestTrailersOfAResponseThatIsTakenWhileItIsRead(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			finish := make(chan struct{})
			s := serve(t, h2, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "X-Told")
				w.WriteHeader(503)
				_ = http.NewResponseController(w).Flush()
				<-finish
				_, _ = io.WriteString(w, "busy")
				w.Header().Set("X-Told", "yes")
				w.Header().Set(http.TrailerPrefix+"X-Untold", "too")
			})
			begun := make(chan struct{})
			base := tripper(func(r *http.Request) (*http.Response, error) {
				resp, err := s.base.RoundTrip(r)
				if err == nil {
					rc := resp.Body
					resp.Body = struct {
						io.Reader
						io.Closer
					}{noting(sync.OnceFunc(func() { close(begun) }), rc), rc}
				}
				return resp, err
			})
			p := pipeline.For("x").Retry(pause(0)).With(&rule{acquire: func(n int) error {
				if n > 1 {
					<-begun
					return closed{}
				}
				return nil
			}}).AttemptTimeout(limit("a", time.Minute)).MustBuild()
			resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", s.URL, nil))
			require.NoError(t, err)
			close(finish)
			for range 1000 {
				for key := range resp.Trailer {
					require.Equal(t, "X-Told", key)
				}
				runtime.Gosched()
			}
			require.Equal(t, "busy", text(t, resp))
			require.Equal(t, http.Header{"X-Told": {"yes"}, "X-Untold": {"too"}}, resp.Trailer)
		})
	}
}

// noting is r, with something to do before each read.
func noting(before func(), r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) { before(); return r.Read(p) })
}

// The time of a call is no reason for what a body says after its end, nor for what becomes of the connection of a 101, which no
// timeout cuts.
func TestTimeIsNotBlamedForWhatItDidNotDo(t *testing.T) {
	torn := errors.New("torn")
	t.Run("read after EOF", func(t *testing.T) {
		ends := []error{io.EOF, torn}
		b := &watched{Reader: readFunc(func([]byte) (n int, err error) {
			err, ends = ends[0], ends[1:]
			return 0, err
		})}
		p := pipeline.For("x").AttemptTimeout(limit("a", time.Minute)).MustBuild()
		resp, err := httpx.NewTransport(p, &answers{list: []func(*http.Request) (*http.Response, error){status(200, b)}}).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		_, err = resp.Body.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		_, err = resp.Body.Read(make([]byte, 1))
		require.Equal(t, torn, err)
	})
	t.Run("101", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn := struct {
				io.Reader
				io.WriteCloser
			}{readFunc(func([]byte) (int, error) { return 0, torn }), nil}
			base := tripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 101, Body: conn, Request: r}, nil
			})
			p := pipeline.For("x").AttemptTimeout(limit("a", time.Second)).MustBuild()
			resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
			require.NoError(t, err)
			<-time.After(time.Hour)
			_, err = resp.Body.Read(make([]byte, 1))
			require.Equal(t, torn, err)
		})
	})
}

// Request.Cancel is a way in which a caller goes away: nothing is repeated, and it says nothing of the downstream. What http.Client
// makes of its Timeout stays a matter of time.
func TestRequestCancelIsTheCallersLeaving(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h2, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			circuit := breaker.MustNew(breaker.Config{Consecutive: 1})
			p := pipeline.For("x").Retry(soon()).Breaker(circuit).AttemptTimeout(limit("a", time.Minute)).MustBuild()
			req, cancel := request(t, "GET", s.URL, nil), make(chan struct{})
			//lint:ignore SA1019 callers may still use it
			req.Cancel = cancel
			base := tripper(func(r *http.Request) (*http.Response, error) {
				if s.requests.Load() == 0 {
					go func() {
						for s.requests.Load() == 0 {
							runtime.Gosched()
						}
						close(cancel)
					}()
				}
				return s.base.RoundTrip(r)
			})
			_, err := httpx.NewTransport(p, base).RoundTrip(req)
			require.ErrorContains(t, err, "cancel")
			require.EqualValues(t, 1, s.requests.Load(), "not repeated")
			require.Equal(t, breaker.Closed, circuit.State())
			_, ours := errors.AsType[*retry.Error](err)
			require.False(t, ours, "what the base said")

			client := &http.Client{Timeout: 300 * time.Millisecond, Transport: httpx.NewTransport(p, s.base)}
			_, err = client.Get(s.URL)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, breaker.Open, circuit.State(), "hung for longer than BlameAfter")
		})
	}
}

// Whoever keeps a failure keeps no response alive, its buffers and its connection.
func TestAFailureThatIsKeptKeepsNoResponse(t *testing.T) {
	for name, attempts := range map[string]int{"discarded": 2, "taken": 1} {
		t.Run(name, func(t *testing.T) {
			var kept error
			var responses []weak.Pointer[http.Response]
			base := tripper(func(r *http.Request) (*http.Response, error) {
				resp, err := status(503, body("busy"))(r)
				responses = append(responses, weak.Make(resp))
				return resp, err
			})
			p := pipeline.For("x").Retry(soon(func(c *retry.Config) {
				c.MaxAttempts = attempts
				c.RetryIf = func(err error) bool { kept = err; return true }
			})).MustBuild()
			func() {
				resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
				require.NoError(t, err)
				require.Equal(t, "busy", text(t, resp))
			}()
			for _, r := range responses {
				eventually(t, func() bool { runtime.GC(); return r.Value() == nil }, "collected")
			}
			require.Error(t, kept)
		})
	}
}

// Close, from several goroutines, while a read is under way and the time of the call ends: everything ends, once.
func TestCloseRacesWithEverything(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "begin")
				_ = http.NewResponseController(w).Flush()
				if r.URL.Path == "/hang" {
					<-r.Context().Done()
				}
			})
			p := pipeline.For("x").Timeout(limit("t", time.Minute)).AttemptTimeout(limit("a", 30*time.Second)).MustBuild()
			for i := range 60 {
				base := &spy{RoundTripper: s.base}
				ctx, cancel := context.WithCancel(t.Context())
				path := []string{"/hang", "/"}[i%2]
				resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", s.URL+path, nil).WithContext(ctx))
				require.NoError(t, err)
				var all sync.WaitGroup
				all.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
				for range 2 {
					all.Go(func() { _ = resp.Body.Close() })
				}
				if i%3 == 0 {
					all.Go(cancel)
				}
				all.Wait()
				require.NoError(t, resp.Body.Close(), "once more")
				require.Error(t, base.seen[0].Err())
				cancel()
			}
		})
	}
}

// A failed response whose connection or stream is reset in the middle gives way to its retry all the same; refused, it is the
// caller's, with what arrived and how it ended.
func TestAFailedResponseThatIsReset(t *testing.T) {
	for name, h2 := range protocols {
		for _, refused := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var s *site
				s = serve(t, h2, func(w http.ResponseWriter, _ *http.Request) {
					if s.requests.Load() > 1 {
						_, _ = io.WriteString(w, "ok")
						return
					}
					w.WriteHeader(503)
					_, _ = io.WriteString(w, "bu")
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				})
				b := pipeline.For("x").Retry(pause(30 * time.Millisecond)).AttemptTimeout(limit("a", time.Minute))
				if refused {
					b = b.With(fullAfter(0))
				}
				resp, err := s.client(b.MustBuild()).Get(s.URL)
				require.NoError(t, err)
				all, err := io.ReadAll(resp.Body)
				require.NoError(t, resp.Body.Close())
				if !refused {
					require.NoError(t, err)
					require.Equal(t, "ok", string(all))
					return
				}
				require.Equal(t, 503, resp.StatusCode)
				require.Equal(t, "bu", string(all))
				require.Error(t, err)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, context.Canceled)
			})
		}
	}
}

// A server that answers 503 instead of asking for the body (Expect: 100-continue) gets it whole with the retry.
func TestExpectContinue(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 1)
			var s *site
			s = serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
				if s.requests.Load() == 1 {
					w.WriteHeader(503)
					return
				}
				sent, _ := io.ReadAll(r.Body)
				got <- string(sent)
			})
			s.base.ExpectContinueTimeout = 30 * time.Second
			own, again := body("hello"), body("hello")
			req := request(t, "PUT", s.URL, own)
			req.ContentLength, req.GetBody = 5, func() (io.ReadCloser, error) { return again, nil }
			req.Header.Set("Expect", "100-continue")
			p := pipeline.For("x").Retry(pause(0)).AttemptTimeout(limit("a", time.Minute)).MustBuild()
			resp, err := httpx.NewTransport(p, s.base).RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, "hello", <-got)
			for _, b := range []*watched{own, again} {
				eventually(t, func() bool { return b.closes.Load() == 1 }, "closed once")
			}
		})
	}
}

// The attempt's time is over in the instant at which its response is asked for, and nobody has told its context yet: the response can
// no longer be read, whoever of the two timers comes first.
func TestTimeThatIsOverIsOverBeforeItsTimerSaysSo(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe() // nothing is ever written
			defer w.Close()
			base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, &watched{Reader: r})}}
			p := pipeline.For("x").Retry(pause(time.Second)).With(fullAfter(0)).AttemptTimeout(limit("a", time.Second)).MustBuild()
			resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
			require.Nil(t, resp)
			require.ErrorIs(t, err, bulkhead.ErrFull)
		})
	}
}
