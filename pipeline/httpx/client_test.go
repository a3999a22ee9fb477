package httpx_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// full is a pipeline with everything that changes requests and bodies.
func full() *pipeline.Pipeline {
	return pipeline.For("x").Timeout(limit("t", time.Minute)).Retry(soon()).AttemptTimeout(limit("a", 30*time.Second)).MustBuild()
}

// everything a client may meet, over both protocols.
func TestHTTPClient(t *testing.T) {
	for name, h2 := range protocols {
		s := serve(t, h2, answerAnything)
		t.Run(name+"/redirects and cookies", func(t *testing.T) {
			client := s.client(full())
			jar, err := cookiejar.New(nil)
			require.NoError(t, err)
			client.Jar = jar
			resp, err := client.Post(s.URL+"/redirect", "text/plain", strings.NewReader("hello"))
			require.NoError(t, err)
			require.Equal(t, "POST hello a=1", text(t, resp))
			require.Equal(t, "/target", resp.Request.URL.Path)
		})
		t.Run(name+"/trailers", func(t *testing.T) {
			resp, err := s.client(full()).Get(s.URL + "/trailer")
			require.NoError(t, err)
			require.Equal(t, "body", text(t, resp))
			require.Equal(t, "done", resp.Trailer.Get("X-End"))
		})
		t.Run(name+"/1xx and httptrace", func(t *testing.T) {
			var mu sync.Mutex
			var got []int
			reused := false
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, code)
					return nil
				},
				GotConn: func(i httptrace.GotConnInfo) { mu.Lock(); reused = reused || i.Reused; mu.Unlock() },
			})
			resp, err := s.client(full()).Do(request(t, "GET", s.URL+"/early", nil).WithContext(ctx))
			require.NoError(t, err)
			require.Equal(t, "late", text(t, resp))
			require.Equal(t, []int{103}, got)
			require.True(t, reused)
		})
		t.Run(name+"/HEAD, 204, 304, empty", func(t *testing.T) {
			for path, code := range map[string]int{"/204": 204, "/304": 304, "/empty": 200} {
				resp, err := s.client(full()).Get(s.URL + path)
				require.NoError(t, err)
				require.Equal(t, code, resp.StatusCode)
				require.Empty(t, text(t, resp))
			}
			resp, err := s.client(full()).Head(s.URL + "/target")
			require.NoError(t, err)
			require.Empty(t, text(t, resp))
			require.EqualValues(t, 5, resp.ContentLength)
		})
		t.Run(name+"/Expect: 100-continue", func(t *testing.T) {
			s.base.ExpectContinueTimeout = 10 * time.Second
			for path, want := range map[string]string{"/target": "PUT hello ", "/refuse": "no"} {
				req := request(t, "PUT", s.URL+path, strings.NewReader("hello"))
				req.Header.Set("Expect", "100-continue")
				resp, err := s.client(full()).Do(req)
				require.NoError(t, err)
				require.Equal(t, want, text(t, resp))
			}
		})
		t.Run(name+"/the request of a response is the caller's", func(t *testing.T) {
			req := request(t, "GET", s.URL+"/target", nil)
			resp, err := httpx.NewTransport(full(), s.base).RoundTrip(req)
			require.NoError(t, err)
			require.Same(t, req, resp.Request)
			_ = text(t, resp)
		})
		t.Run(name+"/Client.Timeout", func(t *testing.T) {
			client := s.client(full())
			client.Timeout = 50 * time.Millisecond
			_, err := client.Get(s.URL + "/hang")
			e, ok := errors.AsType[*url.Error](err)
			require.True(t, ok)
			require.True(t, e.Timeout())
			for _, p := range []*pipeline.Pipeline{ // our own limits say the same
				pipeline.For("x").Timeout(limit("t", 30*time.Millisecond)).MustBuild(),
				pipeline.For("x").Timeout(limit("t", 30*time.Millisecond)).Retry(soon()).MustBuild(),
				pipeline.For("x").AttemptTimeout(limit("a", 30*time.Millisecond)).Retry(soon()).MustBuild(),
			} {
				_, err = s.client(p).Get(s.URL + "/hang")
				e, ok = errors.AsType[*url.Error](err)
				require.True(t, ok)
				require.True(t, e.Timeout())
			}
		})
		t.Run(name+"/concurrent use", func(t *testing.T) {
			client := s.client(full())
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for range 5 {
						resp, err := client.Post(s.URL+"/target", "text/plain", strings.NewReader("hello"))
						if err != nil {
							t.Error(err)
							return
						}
						if got, _ := io.ReadAll(resp.Body); string(got) != "POST hello " {
							t.Errorf("got %q", got)
						}
						_ = resp.Body.Close()
					}
				})
			}
			wg.Wait()
		})
	}
}

func answerAnything(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/redirect":
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
	case "/target":
		if r.Method == "HEAD" {
			w.Header().Set("Content-Length", "5")
			return
		}
		sent, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+string(sent)+" "+r.Header.Get("Cookie"))
	case "/trailer":
		w.Header().Set("Trailer", "X-End")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-End", "done")
	case "/early":
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "late")
	case "/204":
		w.WriteHeader(204)
	case "/304":
		w.WriteHeader(304)
	case "/refuse":
		w.WriteHeader(417)
		_, _ = io.WriteString(w, "no")
	case "/hang":
		<-r.Context().Done()
	}
}

// A panic and runtime.Goexit of a base go on; what is held is given back, what is open is closed.
func TestBasePanics(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "goexit": func() { runtimeGoexit() }} {
		t.Run(name, func(t *testing.T) {
			first, own, again, guard := body("busy"), body("hello"), body("hello"), &rule{}
			n := 0
			base := tripper(func(r *http.Request) (*http.Response, error) {
				if n++; n == 1 {
					_ = r.Body.Close()
					return status(503, first)(r)
				}
				leave()
				return nil, nil
			})
			req := request(t, "PUT", "http://host", own)
			req.GetBody = func() (io.ReadCloser, error) { return again, nil }
			p := pipeline.For("x").Retry(soon()).With(guard).AttemptTimeout(limit("a", time.Minute)).MustBuild()
			var recovered any
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { recovered = recover() }()
				_, _ = httpx.NewTransport(p, base).RoundTrip(req)
			}()
			<-ended
			if name == "panic" {
				require.Equal(t, "boom", recovered)
			}
			require.Equal(t, []string{"failed", "panicked"}, guard.verdicts())
			require.EqualValues(t, 1, first.closes.Load())
			require.EqualValues(t, 1, own.closes.Load())
			require.EqualValues(t, 1, again.closes.Load())
		})
	}
}

// A panic that is neither the base's nor the caller's, while a response is open.
func TestGuardPanicsWhileAResponseIsOpen(t *testing.T) {
	for _, code := range []int{200, 503} {
		b := body("x")
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(code, b)}}
		p := pipeline.For("x").With(settles(func() { panic("settle") })).MustBuild()
		require.PanicsWithValue(t, "settle", func() {
			_, _ = httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		})
		require.EqualValues(t, 1, b.closes.Load(), code)
	}
}

// A body that panics while it is read ahead does not end the program.
func TestBodyPanicsWhileItIsDrained(t *testing.T) {
	first := &watched{Reader: readFunc(func([]byte) (int, error) { panic("read") })}
	base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first), status(200, nil)}}
	resp, err := httpx.NewTransport(retrying(), base).RoundTrip(request(t, "GET", "http://host", nil))
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.EqualValues(t, 1, first.closes.Load())
}

// http.Client.CloseIdleConnections reaches the base.
func TestCloseIdleConnections(t *testing.T) {
	base := &closable{}
	(&http.Client{Transport: httpx.NewTransport(retrying(), base)}).CloseIdleConnections()
	(&http.Client{Transport: httpx.NewTransport(retrying(), tripper(fails(errDown)))}).CloseIdleConnections() // has none
	require.Equal(t, 1, base.closed)
}

type closable struct {
	tripper
	closed int
}

func (c *closable) CloseIdleConnections() { c.closed++ }

// Bad input is an error of every call that names field and value.
func TestTransportMisconfigured(t *testing.T) {
	var nilBase *http.Transport
	for want, tr := range map[string]http.RoundTripper{
		"httpx: the pipeline is nil: want a pipeline":                              httpx.NewTransport(nil, nil),
		`httpx "client": base is a nil *http.Transport`:                            httpx.NewTransport(retrying(), nilBase),
		`httpx "client": RetryStatus is 101: want statuses from 200 to 599`:        httpx.NewTransport(retrying(), nil, httpx.RetryStatus(503, 101)),
		`httpx "client": RetryStatus is 600: want`:                                 httpx.NewTransport(retrying(), nil, httpx.RetryStatus(600)),
		`httpx "client": Safety is nil`:                                            httpx.NewTransport(retrying(), nil, httpx.Safety(nil)),
		"httpx: PerHost's max is 0: want 1 or more":                                httpx.NewTransport(nil, nil, httpx.PerHost(func(string) *pipeline.Pipeline { return nil }, 0)),
		"httpx: PerHost's make is nil":                                             httpx.NewTransport(nil, nil, httpx.PerHost(nil, 1)),
		`httpx "client": option 1 is nil`:                                          httpx.NewTransport(retrying(), nil, nil),
		`httpx "client": Clock is a nil *clockwork.FakeClock: want nil itself`:     httpx.NewTransport(retrying(), nil, httpx.Clock(nilClock)),
		`httpx: PerHost's pipeline for "host:8080" is nil: want one, or one given`: httpx.NewTransport(nil, nil, httpx.PerHost(func(string) *pipeline.Pipeline { return nil }, 1)),
	} {
		_, err := tr.RoundTrip(request(t, "GET", "http://HOST:8080", nil))
		require.ErrorContains(t, err, want)
	}
}

// The standard transport's own errors come through.
func TestTransportErrorsComeThrough(t *testing.T) {
	s := serve(t, true, answerAnything)
	s.base.TLSClientConfig = &tls.Config{} // trusts nobody
	_, err := s.client(retrying()).Get(s.URL)
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	require.True(t, ok)

	_, err = httpx.NewTransport(retrying(), nil).RoundTrip(&http.Request{Method: "GET"})
	require.ErrorContains(t, err, "nil Request.URL")
}
