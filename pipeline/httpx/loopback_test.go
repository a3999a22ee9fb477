package httpx_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// The rules that are tested in memory elsewhere, row by row, hold over real connections, too.

// saw is what a server notes of its requests.
type saw struct {
	mu   sync.Mutex
	sent []string // method, length, body
}

func (s *saw) note(r *http.Request) (n int) {
	sent, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r.Method+" "+string(sent))
	return len(s.sent)
}

func (s *saw) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.sent = nil }()
	return s.sent
}

// answering answers with these statuses, one after the other, and the last one for ever.
func answering(t *testing.T, h2 bool, codes ...int) (*site, *saw) {
	seen := &saw{}
	return serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
		n := seen.note(r)
		code := codes[min(n, len(codes))-1]
		w.WriteHeader(code)
		if code != 204 && code != 304 {
			_, _ = io.WriteString(w, "b"+string(rune('0'+n)))
		}
	}), seen
}

// What may be repeated is repeated, with its body whole and its length right (C32), on connections that are never used twice;
// the caller's request is unchanged, and every body is closed.
func TestLoopbackRepeats(t *testing.T) {
	for name, h2 := range protocols {
		for _, row := range []struct {
			method, key string
			body        string // "" = none, "replay" has GetBody, "once" has not, "nobody" is http.NoBody
			runs        int
		}{
			{"GET", "", "", 3}, {"HEAD", "", "", 3}, {"OPTIONS", "", "", 3}, {"DELETE", "", "", 3}, {"PUT", "", "replay", 3},
			{"PUT", "", "once", 1}, {"PUT", "", "nobody", 3}, {"POST", "", "replay", 1}, {"POST", "", "", 1}, {"PATCH", "", "replay", 1},
			{"POST", "k", "replay", 3}, {"POST", "k", "once", 1}, {"PATCH", "k", "", 3},
		} {
			t.Run(name+"/"+row.method+row.key+row.body, func(t *testing.T) {
				s, seen := answering(t, h2, 503)
				s.base.DisableKeepAlives = !h2 // net/http would rewind by itself
				req, want := request(t, row.method, s.URL, nil), ""
				var bodies []*watched
				again := func() (io.ReadCloser, error) {
					bodies = append(bodies, body("hello"))
					return bodies[len(bodies)-1], nil
				}
				switch row.body {
				case "replay", "once":
					req.Body, _ = again()
					want = "hello"
				case "nobody":
					req.Body = http.NoBody
				}
				if row.body == "replay" {
					req.GetBody, req.ContentLength = again, 5
				}
				if row.key != "" {
					req.Header.Set("Idempotency-Key", row.key)
				}
				before, header := *req, req.Header.Clone()
				resp, err := httpx.NewTransport(full(), s.base).RoundTrip(req)
				require.NoError(t, err)
				require.Equal(t, 503, resp.StatusCode)
				if row.method != "HEAD" {
					require.Equal(t, "b"+string(rune('0'+row.runs)), text(t, resp), "the last response, whole")
				}
				require.Equal(t, slices.Repeat([]string{row.method + " " + want}, row.runs), seen.take())
				require.Equal(t, header, req.Header)
				require.Equal(t, before.Body, req.Body)
				require.Equal(t, before.ContentLength, req.ContentLength)
				for _, b := range bodies {
					eventually(t, func() bool { return b.closes.Load() == 1 }, "closed once")
				}
				if row.body == "replay" {
					require.Len(t, bodies, row.runs, "GetBody is called once per retry")
				}
			})
		}
	}
}

// A GetBody that fails ends the call after one request, with its error; no connection is left with a body half sent.
func TestLoopbackGetBodyFails(t *testing.T) {
	for name, h2 := range protocols {
		s, seen := answering(t, h2, 503)
		errG := errors.New("gone")
		req := request(t, "PUT", s.URL, body("hello"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, errG }
		_, err := s.client(full()).Do(req)
		require.ErrorIs(t, err, errG, name)
		require.Len(t, seen.take(), 1)
	}
}

// Which statuses are retried, and what the guards are told of them; a status of another set than the standard one, as well.
func TestLoopbackStatuses(t *testing.T) {
	for name, h2 := range protocols {
		for code, row := range map[int]struct {
			runs int
			told string
		}{
			200: {1, "returned"}, 204: {1, "returned"}, 301: {1, "returned"}, 304: {1, "returned"}, 400: {1, "returned"}, 404: {2, "returned"},
			408: {2, "returned"}, 425: {2, "returned"}, 429: {2, "ignored"}, 500: {2, "failed"}, 501: {1, "failed"}, 502: {2, "failed"},
			503: {2, "failed"}, 504: {2, "failed"}, 505: {1, "failed"},
		} {
			s, seen := answering(t, h2, code)
			guard := &rule{}
			p := pipeline.For("x").Retry(soon(func(c *retry.Config) { c.MaxAttempts = 2 })).With(guard).AttemptTimeout(limit("a", time.Minute)).MustBuild()
			tr := httpx.NewTransport(p, s.base)
			if code == 404 {
				tr = httpx.NewTransport(p, s.base, httpx.RetryStatus(404))
			}
			resp, err := tr.RoundTrip(request(t, "GET", s.URL, nil))
			require.NoError(t, err)
			require.Equal(t, code, resp.StatusCode)
			_ = text(t, resp)
			require.Len(t, seen.take(), row.runs, "%s %d", name, code)
			require.Equal(t, slices.Repeat([]string{row.told}, row.runs), guard.verdicts(), "%s %d", name, code)
		}
	}
}

// Retry-After (C31): waited for, where it fits; otherwise that response comes back at once. A 429 feeds the cooldown.
func TestLoopbackRetryAfter(t *testing.T) {
	for name, h2 := range protocols {
		for _, row := range []struct {
			after  []string
			second bool
		}{{[]string{"1"}, true}, {[]string{"61"}, false}, {[]string{"3600"}, false}, {[]string{"1", "61"}, false}} {
			var mu sync.Mutex
			var at []time.Time
			s := serve(t, h2, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if at = append(at, time.Now()); len(at) == 1 {
					w.Header()["Retry-After"] = row.after
					w.WriteHeader(429)
					_, _ = io.WriteString(w, "slow down")
				}
			})
			cool := cooldown.MustNew(cooldown.Config{})
			p := pipeline.For("x").Cooldown(cool).
				Retry(soon(func(c *retry.Config) { c.MaxRetryAfter = time.Minute })).AttemptTimeout(limit("a", 30*time.Second)).MustBuild()
			resp, err := s.client(p).Get(s.URL)
			require.NoError(t, err)
			if row.second {
				require.Equal(t, 200, resp.StatusCode, name)
				require.GreaterOrEqual(t, at[1].Sub(at[0]), time.Second)
				require.NoError(t, resp.Body.Close())
				continue
			}
			require.Equal(t, 429, resp.StatusCode, name)
			require.Equal(t, "slow down", text(t, resp))
			_, err = s.client(p).Get(s.URL)
			require.ErrorIs(t, err, cooldown.ErrCooling)
			require.Len(t, at, 1)
		}
	}
}

// An error body without an end holds the retry up for a bounded time (C33 c): its connection is given up.
func TestLoopbackEndlessErrorBody(t *testing.T) {
	for name, h2 := range protocols {
		for how, wait := range map[string]time.Duration{"dribbling": 50 * time.Millisecond, "flooding": 0} {
			var s *site
			s = serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
				if s.requests.Load() > 1 {
					return
				}
				w.WriteHeader(503)
				chunk := strings.Repeat("x", 1000)
				for err := error(nil); err == nil && r.Context().Err() == nil; {
					_, _ = io.WriteString(w, chunk)
					err = http.NewResponseController(w).Flush()
					if wait > 0 {
						<-time.After(wait)
					}
				}
			})
			began := time.Now()
			resp, err := s.client(full()).Get(s.URL)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode, name+how)
			require.NoError(t, resp.Body.Close())
			require.Less(t, time.Since(began), 5*time.Second)
		}
	}
}

// A retry that a guard will refuse is not slept for, and its response is the caller's; where the refusal comes after a long
// backoff and the response could not be read in time, the error carries the status.
func TestLoopbackRefusedRetry(t *testing.T) {
	for name, h2 := range protocols {
		s, seen := answering(t, h2, 503)
		p := pipeline.For("x").Retry(soon(func(c *retry.Config) { c.Backoff = retry.Constant(10 * time.Second) })).
			Breaker(breaker.MustNew(breaker.Config{Consecutive: 1})).AttemptTimeout(limit("a", 30*time.Second)).MustBuild()
		resp, err := s.client(p).Get(s.URL)
		require.NoError(t, err)
		require.Equal(t, "b1", text(t, resp), name)
		require.Len(t, seen.take(), 1)

		hung := serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		p = pipeline.For("x").Retry(soon(func(c *retry.Config) { c.Backoff = retry.Constant(time.Second) })).
			With(&rule{acquire: func(n int) error {
				if n > 1 {
					return &bulkhead.FullError{Max: 1}
				}
				return nil
			}}).AttemptTimeout(limit("a", 800*time.Millisecond)).MustBuild()
		_, err = hung.client(p).Get(hung.URL)
		require.ErrorIs(t, err, bulkhead.ErrFull, name)
		e, ok := errors.AsType[*httpx.StatusError](err)
		require.True(t, ok)
		require.Equal(t, 503, e.Code)
	}
}

// Each host has a circuit of its own; a refused call touches no connection, and closes what it would have sent.
func TestLoopbackPerHost(t *testing.T) {
	for name, h2 := range protocols {
		bad, seenBad := answering(t, h2, 500)
		good, _ := answering(t, h2, 200)
		tr := httpx.NewTransport(nil, bad.base, httpx.PerHost(new(made).pipeline, 4))
		for i := range 3 {
			own := body("hello")
			resp, err := tr.RoundTrip(request(t, "PUT", bad.URL, own))
			if i == 0 {
				require.NoError(t, err)
				require.Equal(t, 500, resp.StatusCode)
				_ = text(t, resp)
			} else {
				require.ErrorIs(t, err, breaker.ErrOpen, name)
				require.Zero(t, own.reads.Load())
			}
			eventually(t, func() bool { return own.closes.Load() == 1 }, "closed once")
		}
		require.Len(t, seenBad.take(), 1)
		tr = httpx.NewTransport(nil, good.base, httpx.PerHost(new(made).pipeline, 4))
		resp, err := tr.RoundTrip(request(t, "GET", good.URL, nil))
		require.NoError(t, err)
		require.Equal(t, "b1", text(t, resp))
	}
}

// A handler's own answer passes untouched, and its guards hear of it; a panic goes on to the server, which aborts.
func TestLoopbackHandlers(t *testing.T) {
	for name, h2 := range protocols {
		for code, told := range map[int]string{200: "returned", 301: "returned", 404: "returned", 429: "returned", 500: "failed", 503: "failed", 504: "failed", 0: "panicked"} {
			guard := &rule{}
			p := pipeline.For("x").Retry(soon()).With(guard).AttemptTimeout(limit("a", time.Minute)).MustBuild()
			s := behind(t, h2, p, func(w http.ResponseWriter, _ *http.Request) {
				if code == 0 {
					panic("boom")
				}
				w.Header().Set("X-Own", "1")
				w.Header().Set("Retry-After", "77")
				w.WriteHeader(code)
				_, _ = io.WriteString(w, "own")
			})
			resp, err := s.base.RoundTrip(request(t, "POST", s.URL, nil))
			if code == 0 {
				require.Error(t, err, name)
			} else {
				require.NoError(t, err)
				require.Equal(t, code, resp.StatusCode)
				require.Equal(t, "own", text(t, resp))
				require.Equal(t, "1", resp.Header.Get("X-Own"))
				require.Equal(t, []string{"77"}, resp.Header.Values("Retry-After"))
			}
			eventually(t, func() bool { return len(guard.verdicts()) > 0 }, "settled")
			require.Equal(t, []string{told}, guard.verdicts(), "%s %d", name, code)
			require.EqualValues(t, 1, s.requests.Load(), "never retried")
		}
	}
}
