package httpx_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// stream writes 16 chunks of 64 KiB, 3 ms apart.
func stream(w http.ResponseWriter) {
	chunk := []byte(strings.Repeat("c", 64<<10))
	for range 16 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-time.After(3 * time.Millisecond)
	}
}

// spy notes the contexts of the attempts.
type spy struct {
	http.RoundTripper
	seen []context.Context
}

func (s *spy) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, earlier := range s.seen {
		if earlier.Err() == nil {
			return nil, errors.New("an earlier attempt's context is still alive")
		}
	}
	s.seen = append(s.seen, r.Context())
	return s.RoundTripper.RoundTrip(r)
}

// C34: the attempt's context lives until EOF or Close, and a slow body inside the limit arrives whole.
func TestContextLivesAsLongAsTheBody(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/retried" && r.Header.Get("Cookie") == "" {
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(503)
					return
				}
				stream(w)
			})
			for _, path := range []string{"/", "/retried"} {
				for what, b := range map[string]pipeline.Builder{
					"attempt": pipeline.For("x").AttemptTimeout(limit("a", 30*time.Second)),
					"total":   pipeline.For("x").Timeout(limit("t", 30*time.Second)),
					"both":    pipeline.For("x").Timeout(limit("t", 40*time.Second)).AttemptTimeout(limit("a", 30*time.Second)),
				} {
					t.Run(what+path, func(t *testing.T) {
						base := &spy{RoundTripper: s.base}
						first := true
						flip := tripper(func(r *http.Request) (*http.Response, error) { // the cookie tells the second attempt
							if !first {
								r = r.Clone(r.Context())
								r.Header.Set("Cookie", "again=1")
							}
							first = false
							if what == "total" { // one context for all attempts
								return s.base.RoundTrip(r)
							}
							return base.RoundTrip(r)
						})
						resp, err := httpx.NewTransport(b.Retry(soon()).MustBuild(), flip).RoundTrip(request(t, "GET", s.URL+path, nil))
						require.NoError(t, err)
						for _, ctx := range base.seen[max(0, len(base.seen)-1):] {
							require.NoError(t, ctx.Err())
						}
						n, err := io.Copy(io.Discard, resp.Body)
						require.NoError(t, err)
						require.EqualValues(t, 1<<20, n)
						for _, ctx := range base.seen {
							require.Error(t, ctx.Err(), "over at EOF, before Close")
						}
						require.NoError(t, resp.Body.Close())
					})
				}
			}
			t.Run("closed half way", func(t *testing.T) {
				base := &spy{RoundTripper: s.base}
				p := pipeline.For("x").AttemptTimeout(limit("a", 30*time.Second)).MustBuild()
				resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", s.URL, nil))
				require.NoError(t, err)
				_, err = io.CopyN(io.Discard, resp.Body, 1<<19)
				require.NoError(t, err)
				require.NoError(t, base.seen[0].Err())
				require.NoError(t, resp.Body.Close())
				require.ErrorIs(t, base.seen[0].Err(), context.Canceled)
				_, err = resp.Body.Read(make([]byte, 1))
				require.Error(t, err)
				require.NotErrorIs(t, err, context.Canceled, "read after Close is not a matter of time")
			})
		})
	}
}

// C34: no timer outlives the body, however it ends, nor a response that gave way to a retry; the body of a 101 is a connection.
func TestNoTimerOutlivesTheBody(t *testing.T) {
	switched := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 101, Request: r, Body: struct {
			*watched
			io.Writer
		}{body("whole"), io.Discard}}, nil
	}
	for name, last := range map[string]func(*http.Request) (*http.Response, error){"200": status(200, body("whole")), "101": switched} {
		for how, end := range map[string]func(io.ReadCloser) error{
			"Close": func(b io.ReadCloser) error { return b.Close() },
			"EOF":   func(b io.ReadCloser) error { _, err := io.Copy(io.Discard, b); return err },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				clock := &timers{Clock: clockwork.NewFakeClock()}
				p := pipeline.For("x").
					Timeout(timeout.MustNew(timeout.Config{Limit: 9 * time.Second, Clock: clock})).
					Retry(soon(func(c *retry.Config) { c.Backoff, c.Clock = retry.Immediate, clock })).
					AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 5 * time.Second, Clock: clock})).MustBuild()
				base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, body("busy")), last}}
				resp, err := httpx.NewTransport(p, base, httpx.Clock(clock)).RoundTrip(request(t, "GET", "http://host", nil))
				require.NoError(t, err)
				require.Error(t, base.seen[0].Context().Err())
				require.NoError(t, base.seen[1].Context().Err())
				require.Positive(t, clock.live.Load())
				require.NoError(t, end(resp.Body))
				require.Error(t, base.seen[1].Context().Err())
				require.Zero(t, clock.live.Load())
			})
		}
	}
}

// timers is a clock that counts those which are under way.
type timers struct {
	clockwork.Clock
	live atomic.Int64
}

func (c *timers) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	c.live.Add(1)
	return &counted{c.Clock.AfterFunc(d, f), c}
}

type counted struct {
	clockwork.Timer
	clock *timers
}

func (t *counted) Stop() bool {
	stopped := t.Timer.Stop()
	if stopped {
		t.clock.live.Add(-1)
	}
	return stopped
}

// The attempt timeout covers the body, which then fails with an error that matches DeadlineExceeded.
func TestTimeoutCoversTheBody(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "begin")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			for what, b := range map[string]pipeline.Builder{
				"attempt": pipeline.For("x").AttemptTimeout(limit("a", 400*time.Millisecond)),
				"total":   pipeline.For("x").Timeout(limit("t", 400*time.Millisecond)),
			} {
				slots, circuit := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1}), breaker.MustNew(breaker.Config{})
				resp, err := s.client(b.Retry(soon()).Bulkhead(slots).Breaker(circuit).MustBuild()).Get(s.URL)
				require.NoError(t, err, what)
				require.Zero(t, slots.InUse(), "slots settle at the headers")
				require.Equal(t, 1, circuit.Snapshot().Calls, "and so does the breaker")
				got, err := io.ReadAll(resp.Body)
				require.Equal(t, "begin", string(got))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, timeout.ErrTimeout)
				require.NoError(t, resp.Body.Close())
				require.EqualValues(t, 0, circuit.Snapshot().Failures)
			}
		})
	}
}

// A body that ends with an error of its own, when the time is over, still tells of the time.
func TestBodyErrorTellsOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		torn := errors.New("torn")
		base := tripper(func(r *http.Request) (*http.Response, error) {
			ctx := r.Context()
			return status(200, &watched{Reader: readFunc(func([]byte) (int, error) {
				<-ctx.Done()
				return 0, torn
			})})(r)
		})
		p := pipeline.For("x").AttemptTimeout(limit("a", time.Second)).MustBuild()
		resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		_, err = resp.Body.Read(make([]byte, 1))
		require.ErrorIs(t, err, torn)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, resp.Body.Close())
	})
}

// A cause that cannot be compared is still told, and crashes nobody.
func TestBodyErrorWithAnUncomparableCause(t *testing.T) {
	base := tripper(func(r *http.Request) (*http.Response, error) {
		ctx := r.Context()
		return status(200, &watched{Reader: readFunc(func([]byte) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx) // as net/http does
		})})(r)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	p := pipeline.For("x").AttemptTimeout(limit("a", time.Minute)).MustBuild()
	resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil).WithContext(ctx))
	require.NoError(t, err)
	cancel(uncomparable{[]int{1}})
	_, err = resp.Body.Read(make([]byte, 1))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, resp.Body.Close())
}

// uncomparable has a type that can be compared, and a value that cannot.
type uncomparable struct{ v any }

func (uncomparable) Error() string { return "uncomparable" }

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// A 101's body stays an io.Writer.
func TestSwitchingProtocols(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	})
	p := pipeline.For("x").AttemptTimeout(limit("a", 30*time.Second)).Retry(soon()).MustBuild()
	req := request(t, "GET", s.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := s.client(p).Do(req)
	require.NoError(t, err)
	require.Equal(t, 101, resp.StatusCode)
	conn, ok := resp.Body.(io.ReadWriteCloser)
	require.True(t, ok)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "echo hello\n", line)
	require.NoError(t, conn.Close())
}

// … and can be closed for writing alone, where net/http's own body can: httputil.ReverseProxy does.
func TestSwitchingProtocolsHalfClosed(t *testing.T) {
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		all, _ := io.ReadAll(rw)
		_, _ = rw.WriteString("echo " + string(all))
		_ = rw.Flush()
	})
	p := pipeline.For("x").AttemptTimeout(limit("a", 30*time.Second)).MustBuild()
	req := request(t, "GET", s.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := s.client(p).Do(req)
	require.NoError(t, err)
	_, err = io.WriteString(resp.Body.(io.Writer), "hello")
	require.NoError(t, err)
	require.NoError(t, resp.Body.(interface{ CloseWrite() error }).CloseWrite())
	require.Equal(t, "echo hello", text(t, resp))

	base := tripper(func(r *http.Request) (*http.Response, error) { // a connection that cannot
		return &http.Response{StatusCode: 101, Body: struct{ io.ReadWriteCloser }{nil}, Request: r}, nil
	})
	resp, err = httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
	require.NoError(t, err)
	require.ErrorIs(t, resp.Body.(interface{ CloseWrite() error }).CloseWrite(), http.ErrNotSupported)
}

// Without timeouts there is nothing to keep: the caller gets the base's own body.
func TestOwnBodyWithoutTimeouts(t *testing.T) {
	b := body("x")
	base := &answers{list: []func(*http.Request) (*http.Response, error){status(200, b)}}
	resp, err := httpx.NewTransport(retrying(), base).RoundTrip(request(t, "GET", "http://host", nil))
	require.NoError(t, err)
	require.Same(t, b, resp.Body)
	require.NoError(t, resp.Body.Close())
}
