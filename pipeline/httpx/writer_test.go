package httpx_test

import (
	"bytes"
	"errors"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// Streaming keeps working: each chunk arrives when it is flushed, however the handler asks for it.
func TestFlush(t *testing.T) {
	for name, h2 := range protocols {
		for how, flush := range map[string]func(http.ResponseWriter) error{
			"controller": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
			"Flusher":    func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				next := make(chan struct{})
				s := behind(t, h2, full(), func(w http.ResponseWriter, _ *http.Request) {
					for _, chunk := range []string{"a", "b"} {
						_, _ = io.WriteString(w, chunk)
						if err := flush(w); err != nil {
							t.Error(err)
						}
						<-next
					}
				})
				resp := s.do(t, "GET", "/")
				got := make([]byte, 1)
				for _, want := range []string{"a", "b"} {
					_, err := io.ReadFull(resp.Body, got)
					require.NoError(t, err)
					require.Equal(t, want, string(got))
					next <- struct{}{}
				}
				require.NoError(t, resp.Body.Close())
			})
		}
	}
}

// Hijacker through http.ResponseController and by assertion; over HTTP/2 there is none, and nobody claims one.
func TestHijack(t *testing.T) {
	for how, assert := range map[string]bool{"controller": false, "Hijacker": true} {
		guard := &rule{}
		p := pipeline.For("x").With(guard).AttemptTimeout(limit("a", 50*time.Millisecond)).MustBuild()
		s := behind(t, false, p, func(w http.ResponseWriter, r *http.Request) {
			hijack := http.NewResponseController(w).Hijack
			if assert {
				hijack = w.(http.Hijacker).Hijack
			}
			conn, rw, err := hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			<-r.Context().Done() // its deadline passes, and nothing is written into the connection
			_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nown")
			_ = rw.Flush()
		})
		resp := s.do(t, "GET", "/")
		require.Equal(t, "own", text(t, resp), how)
		eventually(t, func() bool { return len(guard.verdicts()) == 1 }, "settled")
		require.Equal(t, []string{"returned"}, guard.verdicts())
	}
	s := behind(t, true, full(), func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Hijacker); ok {
			t.Error("claims to be a Hijacker")
		}
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Error(err)
		}
	})
	require.Empty(t, text(t, s.do(t, "GET", "/")))
}

// http.ResponseController reaches what the writer does not have, also through somebody else's wrapper.
func TestResponseController(t *testing.T) {
	inner := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		for _, err := range []error{
			c.SetReadDeadline(time.Now().Add(time.Hour)), c.SetWriteDeadline(time.Now().Add(time.Hour)), c.EnableFullDuplex(),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		if _, ok := w.(http.Hijacker); !ok {
			t.Error("no Hijacker behind the wrapper")
		}
	})
	h := httpx.Middleware(full())(inner)
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrapper{w}, r) })
	require.Equal(t, 200, s.do(t, "GET", "/").StatusCode)
}

// wrapper is another middleware's writer.
type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// plain is a writer that can do nothing else.
type plain struct{ http.ResponseWriter }

// What the server's writer cannot do is an error, and no lie.
func TestFlushIsNotSupported(t *testing.T) {
	for name, h := range map[string]func(http.ResponseWriter){
		"controller": func(w http.ResponseWriter) {
			if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
				t.Error(err)
			}
		},
		"Flusher": func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
	} {
		p := pipeline.For("x").AttemptTimeout(limit("a", time.Nanosecond)).MustBuild()
		w := httptest.NewRecorder()
		httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { h(w) })).
			ServeHTTP(plain{w}, httptest.NewRequest("GET", "/", nil))
		require.Equal(t, 504, w.Code, name+": nothing went out, so that the answer is still open")
	}
}

// Files, strings and copies arrive whole, whatever the writer below can do.
func TestWriterCopies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	want := strings.Repeat("0123456789", 50_000)
	require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	for name, h := range map[string]http.HandlerFunc{
		"ServeFile": func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) },
		"string":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, want) },
		"ReadFrom": func(w http.ResponseWriter, _ *http.Request) {
			if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader(want)); err != nil || n != int64(len(want)) {
				t.Errorf("%d, %v", n, err)
			}
		},
	} {
		for _, bare := range []bool{false, true} {
			guarded := httpx.Middleware(full())(h)
			s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
				if bare {
					w = plain{w}
				}
				guarded.ServeHTTP(w, r)
			})
			require.Equal(t, want, text(t, s.do(t, "GET", "/file")), name)
		}
	}
}

// A copy that has nothing to write before the deadline has written nothing: 504, and a timeout for the guards.
func TestCopyOfNothing(t *testing.T) {
	for name, h2 := range protocols {
		guard := &rule{}
		p := pipeline.For("x").With(guard).AttemptTimeout(limit("a", 50*time.Millisecond)).MustBuild()
		s := behind(t, h2, p, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, readFunc(func([]byte) (int, error) { // as the body of a response that does not come
				<-r.Context().Done()
				return 0, r.Context().Err()
			}))
		})
		requireProblem(t, s.do(t, "GET", "/"), 504, "")
		require.Equal(t, []string{"timed_out"}, guard.verdicts(), name)
	}
}

// A flush that fails has sent the header: there is no second one.
func TestFlushFails(t *testing.T) {
	w := &torn{ResponseRecorder: httptest.NewRecorder()}
	p := pipeline.For("x").AttemptTimeout(limit("a", time.Millisecond)).MustBuild()
	httpx.Middleware(p)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, errDown) {
			t.Error(err)
		}
		<-r.Context().Done()
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	require.Equal(t, []int{200}, w.headers)
}

// torn is a writer whose connection is gone.
type torn struct {
	*httptest.ResponseRecorder
	headers []int
}

func (w *torn) WriteHeader(code int) { w.headers = append(w.headers, code) }

func (w *torn) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return errDown
}

// No header is written twice by us; a handler that does it is told so by the server, as ever.
func TestNoHeaderIsWrittenTwice(t *testing.T) {
	var mu sync.Mutex
	var logged bytes.Buffer
	for _, own := range []bool{false, true} {
		h := httpx.Middleware(pipeline.For("x").AttemptTimeout(limit("a", time.Millisecond)).MustBuild())(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(103)
			<-r.Context().Done()
			w.WriteHeader(500)
			if own {
				w.WriteHeader(200)
			}
		}))
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(writeFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return logged.Write(p)
		}), "", 0)
		s.Start()
		resp, err := s.Client().Get(s.URL)
		require.NoError(t, err)
		require.Equal(t, 500, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		s.Close()
		mu.Lock()
		require.Equal(t, own, strings.Contains(logged.String(), "superfluous"), logged.String())
		mu.Unlock()
	}
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// An invalid status panics in the server's writer, as ever, and counts as a panic of the handler.
func TestInvalidStatus(t *testing.T) {
	guard := &rule{}
	h := httpx.Middleware(pipeline.For("x").With(guard).MustBuild())(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(7) }))
	require.Panics(t, func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) })
	require.Equal(t, []string{"panicked"}, guard.verdicts())
}

// Trailers, 1xx, HEAD, 204 and 304 of a handler pass.
func TestServerPassesEverything(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			s := behind(t, h2, full(), answerAnything)
			resp := s.do(t, "GET", "/trailer")
			require.Equal(t, "body", text(t, resp))
			require.Equal(t, "done", resp.Trailer.Get("X-End"))
			require.Equal(t, "late", text(t, s.do(t, "GET", "/early")))
			for path, code := range map[string]int{"/204": 204, "/304": 304, "/empty": 200} {
				resp := s.do(t, "GET", path)
				require.Equal(t, code, resp.StatusCode)
				require.Empty(t, text(t, resp))
			}
			resp = s.do(t, "HEAD", "/target")
			require.EqualValues(t, 5, resp.ContentLength)
			require.NoError(t, resp.Body.Close())
		})
	}
}

// The server removes the temporary files of a form, though the handler parsed a copy of its request.
func TestTemporaryFilesOfAFormAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	files := func() int {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		return len(entries)
	}
	inside := 0
	s := behind(t, false, full(), func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		inside = files()
	})
	var form bytes.Buffer
	mw := multipart.NewWriter(&form)
	part, err := mw.CreateFormFile("f", "name")
	require.NoError(t, err)
	_, err = part.Write(make([]byte, 11<<20)) // above what is kept in memory
	require.NoError(t, err)
	require.NoError(t, mw.Close())
	resp, err := s.base.RoundTrip(func() *http.Request {
		req := request(t, "POST", s.URL, &form)
		req.Header.Set("Content-Type", mw.FormDataContentType())
		return req
	}())
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 1, inside)
	eventually(t, func() bool { return files() == 0 }, "removed")
}
