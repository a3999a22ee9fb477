package httpx_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// proxied is a reverse proxy behind the middleware in, that goes through a transport out to a server of h.
func proxied(t *testing.T, h2 bool, in, out *pipeline.Pipeline, h http.HandlerFunc) *site {
	t.Helper()
	back := serve(t, h2, h)
	to, err := url.Parse(back.URL)
	require.NoError(t, err)
	return behind(t, h2, in, (&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     httpx.NewTransport(out, back.base),
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}).ServeHTTP)
}

// httputil.ReverseProxy, with everything on both sides: uploads and downloads stream, chunk by chunk.
func TestReverseProxyStreams(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			arrived, next := make(chan struct{}), make(chan struct{})
			s := proxied(t, h2, full(), full(), func(w http.ResponseWriter, r *http.Request) {
				first := make([]byte, 1)
				_, _ = io.ReadFull(r.Body, first)
				close(arrived)
				rest, _ := io.ReadAll(r.Body)
				for _, chunk := range [][]byte{first, rest} {
					_, _ = w.Write(chunk)
					_ = http.NewResponseController(w).Flush()
					<-next
				}
			})
			out, in := io.Pipe()
			go func() {
				_, _ = io.WriteString(in, "a")
				<-arrived // before the last is written
				_, _ = io.WriteString(in, "z")
				_ = in.Close()
			}()
			resp, err := s.base.RoundTrip(request(t, "PUT", s.URL, out))
			require.NoError(t, err)
			got := make([]byte, 1)
			for _, want := range []string{"a", "z"} {
				_, err := io.ReadFull(resp.Body, got)
				require.NoError(t, err)
				require.Equal(t, want, string(got))
				next <- struct{}{}
			}
			require.Empty(t, text(t, resp))
		})
	}
}

// … trailers, announced or not, 1xx, and the budget, which is smaller behind each hop, whatever the client says.
func TestReverseProxyPassesEverything(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			s := proxied(t, h2, full(), full(), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Link", "</style.css>")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Set("Trailer", "X-End")
				_, _ = io.WriteString(w, r.Header.Get(budget.Header))
				w.Header().Set("X-End", "done")
				w.Header().Set(http.TrailerPrefix+"X-More", "more")
			})
			for _, row := range []struct {
				given string
				most  int
			}{{"5000", 5000}, {"600000", 30_000}, {"garbage", 30_000}} {
				var hints atomic.Int64
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
					Got1xxResponse: func(int, textproto.MIMEHeader) error { hints.Add(1); return nil },
				})
				req := request(t, "GET", s.URL, nil).WithContext(ctx)
				req.Header.Set(budget.Header, row.given)
				resp, err := s.base.RoundTrip(req)
				require.NoError(t, err)
				left, err := strconv.Atoi(text(t, resp))
				require.NoError(t, err)
				require.LessOrEqual(t, left, row.most)
				require.Greater(t, left, row.most/2)
				require.EqualValues(t, 1, hints.Load())
				require.Equal(t, "done", resp.Trailer.Get("X-End"))
				require.Equal(t, "more", resp.Trailer.Get("X-More"))
			}
		})
	}
}

// … and upgrades, with a half-close in the one direction.
func TestReverseProxyUpgrades(t *testing.T) {
	s := proxied(t, false, full(), full(), echoUpgraded)
	resp := s.do(t, "GET", "/", "Connection", "Upgrade", "Upgrade", "echo")
	require.Equal(t, 101, resp.StatusCode)
	conn, ok := resp.Body.(io.ReadWriteCloser)
	require.True(t, ok)
	_, err := io.WriteString(conn, "hello")
	require.NoError(t, err)
	require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
	require.Equal(t, "echo hello", text(t, resp))
}

func echoUpgraded(w http.ResponseWriter, _ *http.Request) {
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
}

// A proxy panics with http.ErrAbortHandler when its copying fails. Where its client left, that is neutral; where the server
// behind it broke off, a failure. In either case the client sees an aborted answer, and every slot is free.
func TestReverseProxyAborts(t *testing.T) {
	for name, h2 := range protocols {
		for who, want := range map[string]string{"client": "caller_cancelled", "server": "panicked"} {
			t.Run(name+"/"+who, func(t *testing.T) {
				guard, slots := &rule{}, bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
				in := pipeline.For("in").With(guard).Bulkhead(slots).AttemptTimeout(limit("a", time.Minute)).MustBuild()
				leave := make(chan struct{})
				s := proxied(t, h2, in, full(), func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, "begin")
					_ = http.NewResponseController(w).Flush()
					if who == "server" {
						<-leave
						panic(http.ErrAbortHandler)
					}
					<-r.Context().Done()
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp, err := s.base.RoundTrip(request(t, "GET", s.URL, nil).WithContext(ctx))
				require.NoError(t, err)
				_, err = io.ReadFull(resp.Body, make([]byte, 5))
				require.NoError(t, err)
				if who == "client" {
					cancel()
				}
				close(leave)
				_, err = io.ReadAll(resp.Body)
				require.Error(t, err)
				require.NoError(t, resp.Body.Close())
				eventually(t, func() bool { return len(guard.verdicts()) == 1 && slots.InUse() == 0 }, "settled")
				require.Equal(t, []string{want}, guard.verdicts())
			})
		}
	}
}

// When its time is over before the server behind it answered, a proxy answers 502 by itself, and that is its answer. One whose
// ErrorHandler leaves it alone is answered for: 504. For the guards both were too late.
func TestReverseProxyIsLate(t *testing.T) {
	for name, row := range map[string]struct {
		onError func(http.ResponseWriter, *http.Request, error)
		status  int
	}{"by itself": {nil, 502}, "left alone": {func(http.ResponseWriter, *http.Request, error) {}, 504}} {
		guard := &rule{}
		back := serve(t, false, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		to, err := url.Parse(back.URL)
		require.NoError(t, err)
		in := pipeline.For("in").With(guard).AttemptTimeout(limit("a", 50*time.Millisecond)).MustBuild()
		s := behind(t, false, in, (&httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
			Transport: httpx.NewTransport(full(), back.base), ErrorHandler: row.onError, ErrorLog: log.New(io.Discard, "", 0),
		}).ServeHTTP)
		resp := s.do(t, "GET", "/")
		require.Equal(t, row.status, resp.StatusCode, name)
		require.NoError(t, resp.Body.Close())
		eventually(t, func() bool { return len(guard.verdicts()) == 1 }, "settled")
		require.Equal(t, []string{"timed_out"}, guard.verdicts(), name)
	}
}

// A handler that panics otherwise has panicked, though its client had left; one that calls runtime.Goexit, too.
func TestHandlerPanicsAfterItsClientLeft(t *testing.T) {
	for name, row := range map[string]struct {
		leave   func()
		want    any
		verdict string
	}{
		"panic":           {func() { panic("boom") }, "boom", "panicked"},
		"goexit":          {runtimeGoexit, nil, "panicked"},
		"ErrAbortHandler": {func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler, "caller_cancelled"},
	} {
		guard := &rule{}
		h := httpx.Middleware(pipeline.For("x").With(guard).MustBuild())
		ctx, cancel := context.WithCancel(t.Context())
		var recovered any
		returned := false
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { recovered = recover() }()
			h(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel(); row.leave() })).
				ServeHTTP(nowhere{}, request(t, "GET", "/", nil).WithContext(ctx))
			returned = true
		}()
		<-ended
		require.False(t, returned, name)
		require.Equal(t, row.want, recovered, name)
		require.Equal(t, []string{row.verdict}, guard.verdicts(), name)
	}
}
