package httpx_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// single is a body that keeps no lock, as one that decodes another: Close must not come while Read runs. It hangs until ended.
type single struct {
	t       *testing.T
	ended   <-chan struct{}
	state   int // the race detector's to watch
	reading atomic.Bool
	closes  atomic.Int64
}

func (s *single) Read([]byte) (int, error) {
	s.reading.Store(true)
	defer s.reading.Store(false)
	s.state++
	<-s.ended
	return 0, context.Canceled
}

func (s *single) Close() error {
	assert.False(s.t, s.reading.Load(), "closed while it is read")
	s.state++
	s.closes.Add(1)
	return nil
}

// once503 answers with b first, and with 200 afterwards.
func once503(b *single) http.RoundTripper {
	n := 0
	return tripper(func(r *http.Request) (*http.Response, error) {
		if n++; n > 1 {
			return status(200, body("ok"))(r)
		}
		if b.ended == nil {
			b.ended = r.Context().Done() // as net/http's
		}
		resp, err := status(503, nil)(r)
		resp.Body = b
		return resp, err
	})
}

// io.ReadCloser promises nothing of a Close during a Read: the end of the attempt's context ends the read, and then it is closed,
// whoever wanted it closed.
func TestABodyIsNotClosedWhileItIsReadAhead(t *testing.T) {
	for name, row := range map[string]struct {
		guard *rule
		code  int
	}{
		"discarded for the retry":            {nil, 200},
		"closed by the caller, not a byte":   {fullAfter(0), 503},
		"nobody's: its guard has panicked":   {&rule{acquire: dying(func() { panic("guard") })}, 0},
		"nobody's: its guard calls Goexit":   {&rule{acquire: dying(runtimeGoexit)}, 0},
		"closed by the caller, some time in": {fullAfter(100 * time.Millisecond), 503},
	} {
		for _, ignores := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first, late := &single{t: t}, make(chan struct{})
					if ignores {
						first.ended = late
					}
					b := pipeline.For("x").Retry(pause(time.Millisecond)).AttemptTimeout(limit("a", time.Hour))
					if row.guard != nil {
						row.guard.asked = 0
						b = b.With(row.guard)
					}
					gone := make(chan struct{})
					go func() {
						defer close(gone)
						defer func() { _ = recover() }()
						resp, err := httpx.NewTransport(b.MustBuild(), once503(first)).RoundTrip(request(t, "GET", "http://host", nil))
						if assert.NoError(t, err) {
							assert.Equal(t, row.code, resp.StatusCode)
							assert.NoError(t, resp.Body.Close())
							assert.NoError(t, resp.Body.Close(), "twice")
						}
					}()
					<-gone
					synctest.Wait()
					if ignores {
						require.Zero(t, first.closes.Load(), "its read lasts")
						close(late)
						synctest.Wait()
					}
					require.EqualValues(t, 1, first.closes.Load())
				})
			})
		}
	}
}

func dying(die func()) func(int) error {
	return func(n int) error {
		if n > 1 {
			die()
		}
		return nil
	}
}

// The same where the body panics, or calls runtime.Goexit, as it is closed on the goroutine that read it: nothing crashes.
func TestABodyThatPanicsAsItIsClosedAfterItsRead(t *testing.T) {
	for name, die := range map[string]func(){"panic": func() { panic("close") }, "goexit": runtimeGoexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late, closes := make(chan struct{}), 0
				base := &answers{list: []func(*http.Request) (*http.Response, error){
					func(r *http.Request) (*http.Response, error) {
						resp, err := status(503, nil)(r)
						resp.Body = struct {
							io.Reader
							io.Closer
						}{
							readFunc(func([]byte) (int, error) { <-late; return 0, io.ErrUnexpectedEOF }),
							closeFunc(func() error { closes++; die(); return nil }),
						}
						return resp, err
					}, status(200, body("ok")),
				}}
				resp, err := httpx.NewTransport(retrying(), base).RoundTrip(request(t, "GET", "http://host", nil))
				require.NoError(t, err)
				require.Equal(t, "ok", text(t, resp))
				close(late)
				synctest.Wait()
				require.Equal(t, 1, closes)
			})
		})
	}
}

type closeFunc func() error

func (f closeFunc) Close() error { return f() }

// unzip is a base that decodes by hand, as many do.
type unzip struct{ base http.RoundTripper }

func (u unzip) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		return nil, err
	}
	under := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{z, closeFunc(func() error { _ = z.Close(); return under.Close() })}
	return resp, nil
}

// Over a real connection, with a body that hangs: its exchange is over when the retry is sent, by its context where the base
// decodes, and also without any where the body is net/http's own.
func TestAHangingBodyOutlivesNoRetry(t *testing.T) {
	for name, h2 := range protocols {
		for _, decoder := range []string{"the base", "net/http", "nobody"} {
			t.Run(name+", decoded by "+decoder, func(t *testing.T) {
				left := make(chan struct{})
				var s *site
				s = serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Encoding", "gzip")
					first := s.requests.Load() == 1
					if first {
						w.WriteHeader(503)
					}
					z := gzip.NewWriter(w)
					_, _ = io.WriteString(z, "text")
					if !first {
						_ = z.Close()
						return
					}
					_ = z.Flush()
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
					close(left)
				})
				s.base.DisableCompression = decoder != "net/http"
				b, base := pipeline.For("x").Retry(pause(0)), http.RoundTripper(s.base)
				if decoder == "the base" {
					b, base = b.AttemptTimeout(limit("a", time.Hour)), unzip{s.base}
				}
				resp, err := httpx.NewTransport(b.MustBuild(), base).RoundTrip(request(t, "GET", s.URL, nil))
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				_ = text(t, resp)
				<-left
			})
		}
	}
}
