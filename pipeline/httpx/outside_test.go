package httpx_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// A 504 in place of the handler's answer keeps nothing that described that one, and everything else.
func TestLateAnswerDescribesItself(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			p := pipeline.For("x").AttemptTimeout(limit("a", 30*time.Millisecond)).MustBuild()
			s := behind(t, h2, p, func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				for field, value := range map[string]string{
					"Content-Type": "text/html", "Content-Length": "7", "Content-Encoding": "br", "Content-Range": "bytes 0-6/7", "ETag": `"a"`,
					"Content-Disposition": "attachment", "Last-Modified": "Wed, 06 Nov 2024 08:49:37 GMT", "Cache-Control": "max-age=9999",
					"Expires": "Wed, 06 Nov 2044 08:49:37 GMT", "Accept-Ranges": "bytes", "Trailer": "X-End", "Location": "/", "Retry-After": "7",
					http.TrailerPrefix + "X-Late": "1", "Transfer-Encoding": "identity",
					"Access-Control-Allow-Origin": "*", "X-Request-Id": "17",
				} {
					h.Set(field, value)
				}
				<-r.Context().Done()
			})
			resp := s.do(t, "GET", "/")
			requireProblem(t, resp, 504, "")
			for _, gone := range []string{
				"Content-Encoding", "Content-Range", "Etag", "Content-Disposition", "Last-Modified", "Cache-Control", "Expires",
				"Accept-Ranges", "Location",
			} {
				require.Empty(t, resp.Header.Values(gone), gone)
			}
			require.Empty(t, resp.Trailer)
			require.Empty(t, resp.TransferEncoding)
			require.NotEqual(t, "7", resp.Header.Get("Content-Length"))
			require.Equal(t, "*", resp.Header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, "17", resp.Header.Get("X-Request-Id"))
		})
	}
}

// What a middleware outside had said before stays said: it compresses our answers as it does the handler's.
func TestAnswersThroughACompressingMiddleware(t *testing.T) {
	for name, row := range map[string]struct {
		p      *pipeline.Pipeline
		header []string
		status int
		after  string
	}{
		"late":    {pipeline.For("x").AttemptTimeout(limit("a", 30*time.Millisecond)).MustBuild(), nil, 504, ""},
		"refused": {pipeline.For("x").With(&rule{acquire: func(int) error { return closed{} }}).MustBuild(), nil, 503, "1"},
		"over":    {pipeline.For("x").MustBuild(), []string{budget.Header, "0"}, 504, ""},
	} {
		inner := httpx.Middleware(row.p)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			w.Header().Set("Cache-Control", "max-age=9999")
			<-r.Context().Done()
		}))
		s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Cache-Control", "no-store")
			zipped := gzip.NewWriter(w)
			defer zipped.Close()
			inner.ServeHTTP(zipping{w, zipped}, r)
		})
		resp := s.do(t, "GET", "/", append(row.header, "Accept-Encoding", "gzip")...)
		require.Equal(t, []string{"gzip"}, resp.Header.Values("Content-Encoding"), name)
		require.Equal(t, []string{"no-store"}, resp.Header.Values("Cache-Control"), name)
		unzipped, err := gzip.NewReader(resp.Body)
		require.NoError(t, err)
		resp.Body = struct {
			io.Reader
			io.Closer
		}{unzipped, resp.Body}
		requireProblem(t, resp, row.status, row.after)
	}
}

type zipping struct {
	http.ResponseWriter
	to io.Writer
}

func (z zipping) Write(p []byte) (int, error) { return z.to.Write(p) }

// What a mux and a form parser inside found out is there for a middleware outside, behind a timeout as without.
func TestPatternPathValuesAndFormsAreSeenOutside(t *testing.T) {
	mux := http.NewServeMux()
	see := func(http.ResponseWriter, *http.Request) {}
	parse := func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseForm() }
	mux.HandleFunc("GET /orders/{id}/files/{path...}", see)
	mux.HandleFunc("GET /{$}", see)
	mux.HandleFunc("POST /form", parse)
	mux.HandleFunc("GET /aborts/{id}", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, b := range map[string]pipeline.Builder{
		"without": pipeline.For("x"), "timeout": pipeline.For("x").Timeout(limit("t", time.Minute)), "budget": pipeline.For("x"),
	} {
		h := httpx.Middleware(b.MustBuild())(mux)
		for target, want := range map[string]string{
			"GET /orders/7/files/a/b": "GET /orders/{id}/files/{path...} id=7 path=a/b",
			"GET /":                   "GET /{$} id= path=",
			"GET /none":               " id= path=",
			"GET /aborts/8":           "GET /aborts/{id} id=8 path=",
			"POST /form":              "POST /form id= path= a=1 b=2",
		} {
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequest(method, path, nil)
			if method == "POST" {
				r = httptest.NewRequest(method, path+"?a=1", strings.NewReader("b=2"))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			if name == "budget" {
				r.Header.Set(budget.Header, "60000")
			}
			func() {
				defer func() { _ = recover() }()
				h.ServeHTTP(httptest.NewRecorder(), r)
			}()
			got := r.Pattern + " id=" + r.PathValue("id") + " path=" + r.PathValue("path")
			if r.Form != nil {
				got += " a=" + r.Form.Get("a") + " b=" + r.PostForm.Get("b")
			}
			require.Equal(t, want, got, name)
		}
	}
}

// Other muxes have patterns of their own, and set path values by name.
func TestPatternOfAnotherMux(t *testing.T) {
	r := httptest.NewRequest("GET", "/orders/123", nil)
	httpx.Middleware(full())(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.Pattern = "/orders/{id:[0-9]{3}}"
		r.SetPathValue("id", "123")
	})).ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "/orders/{id:[0-9]{3}}", r.Pattern)
	require.Equal(t, "123", r.PathValue("id"))
}

// Two middlewares, one in the other: both hand back.
func TestPatternThroughTwoMiddlewares(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/a/{id}", func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest("GET", "/a/5", nil)
	httpx.Middleware(full())(httpx.Middleware(full())(mux)).ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "/a/{id}", r.Pattern)
	require.Equal(t, "5", r.PathValue("id"))
}

// http.Pusher reaches the server's, also behind somebody's wrapper; a server that has none says so.
func TestPush(t *testing.T) {
	var pushed []string
	h := httpx.Middleware(full())(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := w.(http.Pusher).Push("/style.css", nil); err != nil {
			pushed = append(pushed, err.Error())
		}
	}))
	can := pusher{httptest.NewRecorder(), &pushed}
	h.ServeHTTP(can, httptest.NewRequest("GET", "/", nil))
	h.ServeHTTP(wrapper{can}, httptest.NewRequest("GET", "/", nil))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	require.Equal(t, []string{"/style.css", "/style.css", http.ErrNotSupported.Error()}, pushed)
}

type pusher struct {
	http.ResponseWriter
	pushed *[]string
}

func (p pusher) Push(target string, _ *http.PushOptions) error {
	*p.pushed = append(*p.pushed, target)
	return nil
}

// A refused upload is answered before it is sent, to a client that waits for 100 Continue, and whoever sends it anyway gets the
// answer, too: nothing hangs, and the handler does not run.
func TestRefusedUpload(t *testing.T) {
	for name, h2 := range protocols {
		for _, expect := range []bool{false, true} {
			p := pipeline.For("x").With(&rule{acquire: func(int) error { return closed{} }}).MustBuild()
			s := behind(t, h2, p, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
			s.base.ExpectContinueTimeout = 10 * time.Second
			own := &watched{Reader: bytes.NewReader(make([]byte, 100_000))}
			req := request(t, "POST", s.URL, own)
			if expect {
				req.Header.Set("Expect", "100-continue")
			}
			resp, err := s.base.RoundTrip(req)
			require.NoError(t, err, name)
			requireProblem(t, resp, 503, "1")
			eventually(t, func() bool { return own.closes.Load() == 1 }, "closed")
			if expect && !h2 {
				require.Zero(t, own.reads.Load(), "not sent")
			}
		}
	}
}

// over is a context that ends with an error that == panics at, though its type is comparable.
type over struct {
	context.Context
	ended *bool
}

func (c over) Err() error {
	if *c.ended {
		return parts{[]string{"over"}}
	}
	return nil
}

type parts struct{ of any }

func (parts) Error() string { return "in parts" }

// A context's own error is handed on, whatever it is, and compared with nothing that cannot be.
func TestAnUncomparableErrOfTheCallersContext(t *testing.T) {
	for name, end := range map[string]bool{"at once": true, "while it runs": false} {
		tr := httpx.NewTransport(pipeline.For("x").MustBuild(), tripper(func(r *http.Request) (*http.Response, error) {
			end = true
			return nil, r.Context().Err()
		}))
		_, err := tr.RoundTrip(request(t, "GET", "http://host", nil).WithContext(over{t.Context(), &end}))
		require.ErrorContains(t, err, "in parts", name)
	}
}
