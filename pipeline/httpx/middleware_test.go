package httpx_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// behind serves h behind p, on loopback.
func behind(t *testing.T, h2 bool, p *pipeline.Pipeline, h http.HandlerFunc) *site {
	t.Helper()
	return serve(t, h2, httpx.Middleware(p)(h).ServeHTTP)
}

func (s *site) do(t *testing.T, method, path string, header ...string) *http.Response {
	t.Helper()
	req := request(t, method, s.URL+path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := s.base.RoundTrip(req)
	require.NoError(t, err)
	return resp
}

// requireProblem checks an answer of RFC 9457.
func requireProblem(t *testing.T, resp *http.Response, status int, retryAfter string) {
	t.Helper()
	require.Equal(t, status, resp.StatusCode)
	require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
	require.Equal(t, retryAfter, resp.Header.Get("Retry-After"))
	var got struct {
		Title, Detail string
		Status        int
	}
	require.NoError(t, json.Unmarshal([]byte(text(t, resp)), &got))
	require.Equal(t, status, got.Status)
	require.Equal(t, http.StatusText(status), got.Title)
	require.NotEmpty(t, got.Detail)
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// A refusal becomes 503, the own limiter's 429, each with Retry-After in whole seconds, at least 1.
func TestRefusalsOfAServer(t *testing.T) {
	refuses := func(err error) *rule { return &rule{acquire: func(int) error { return err }} }
	for name, row := range map[string]struct {
		p     *pipeline.Pipeline
		code  int
		after string
	}{
		"own limiter":             {pipeline.For("x").RateLimit(refuses(&ratelimit.LimitedError{Wait: 2*time.Second + 1})).MustBuild(), 429, "3"},
		"limiter as a guard":      {pipeline.For("x").With(refuses(&ratelimit.LimitedError{Wait: time.Millisecond})).MustBuild(), 429, "1"},
		"foreign limiter":         {pipeline.For("x").RateLimit(refuses(closed{wait: 5 * time.Second})).MustBuild(), 429, "5"},
		"quota used up":           {pipeline.For("x").RateLimit(refuses(&ratelimit.LimitedError{Wait: -1})).MustBuild(), 429, "1"},
		"the sentinel":            {pipeline.For("x").With(refuses(ratelimit.ErrLimited)).MustBuild(), 429, "1"},
		"wrapped by a guard":      {pipeline.For("x").RateLimit(refuses(fmt.Errorf("tenant: %w", closed{wait: time.Second}))).MustBuild(), 429, "1"},
		"broken limiter":          {pipeline.For("x").RateLimit(refuses(errDown)).MustBuild(), 503, "1"},
		"broken guard":            {pipeline.For("x").With(refuses(errDown)).MustBuild(), 503, "1"},
		"breaker as limiter":      {pipeline.For("x").RateLimit(refuses(&breaker.OpenError{Wait: 1500 * time.Millisecond})).MustBuild(), 503, "2"},
		"bulkhead as limiter":     {pipeline.For("x").RateLimit(refuses(&bulkhead.FullError{Max: 1})).MustBuild(), 503, "1"},
		"cooldown as limiter":     {pipeline.For("x").RateLimit(refuses(&cooldown.Error{Wait: time.Second})).MustBuild(), 503, "1"},
		"Keyed whose make failed": {pipeline.For("x").RateLimit(perTenant(func(string) (*ratelimit.Limiter, error) { return nil, errDown })).MustBuild(), 503, "1"},
		"Keyed": {pipeline.For("x").RateLimit(perTenant(func(string) (*ratelimit.Limiter, error) {
			l := ratelimit.MustNew(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 1})
			return l, l.AllowN(1)
		})).MustBuild(), 429, "3600"},
		"mapped limiter": {pipeline.For("x").RateLimit(refuses(closed{wait: 4 * time.Second})).
			OnRejected(func(_ context.Context, err error) error { return errors.New("domain") }).MustBuild(), 429, "4"},
		"mapped broken limiter": {pipeline.For("x").RateLimit(refuses(errDown)).
			OnRejected(func(_ context.Context, err error) error { return fmt.Errorf("domain: %w", err) }).MustBuild(), 503, "1"},
		"mapped breaker as limiter": {pipeline.For("x").RateLimit(refuses(&breaker.OpenError{Wait: time.Second})).
			OnRejected(func(_ context.Context, err error) error { return notRejected{err} }).MustBuild(), 503, "1"},
		"limiter's store":       {pipeline.For("x").RateLimit(refuses(&leaf.StoreError{Op: leaf.OpAdmit, Err: errDown})).MustBuild(), 503, "1"},
		"breaker":               {pipeline.For("x").Breaker(refuses(&breaker.OpenError{Wait: 1500 * time.Millisecond})).MustBuild(), 503, "2"},
		"bulkhead":              {pipeline.For("x").Bulkhead(refuses(&bulkhead.FullError{Max: 1})).MustBuild(), 503, "1"},
		"cooldown":              {pipeline.For("x").Cooldown(refuses(&cooldown.Error{Wait: 7 * time.Second})).MustBuild(), 503, "7"},
		"breaker outside retry": {pipeline.For("x").Breaker(refuses(&breaker.OpenError{})).Retry(soon()).BreakerOutsideRetry().MustBuild(), 503, "1"},
		"mapped": {pipeline.For("x").Bulkhead(refuses(closed{wait: 4 * time.Second})).
			OnRejected(func(_ context.Context, err error) error { return errors.New("domain") }).MustBuild(), 503, "4"},
		"mapped to no rejection": {pipeline.For("x").RateLimit(refuses(closed{wait: 4 * time.Second})).
			OnRejected(func(_ context.Context, err error) error { return notRejected{err} }).MustBuild(), 429, "4"},
	} {
		for protocol, h2 := range protocols {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				s := behind(t, h2, row.p, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
				requireProblem(t, s.do(t, "GET", "/"), row.code, row.after)
				resp := s.do(t, "HEAD", "/")
				require.Equal(t, row.code, resp.StatusCode)
				require.Empty(t, text(t, resp))
			})
		}
	}
}

// perTenant is one limiter for the only tenant there is.
func perTenant(make func(string) (*ratelimit.Limiter, error)) leaf.Guard {
	return leaf.Keyed(1, func(context.Context) string { return "a" }, make, func(*ratelimit.Limiter) bool { return true })
}

type notRejected struct{ error }

func (notRejected) Rejected() bool { return false }

// What a refusal answers shows nothing of what refused.
func TestProblemTellsNothingOfTheInside(t *testing.T) {
	p := pipeline.For("secret-pipeline").Bulkhead(&rule{acquire: func(int) error { return &bulkhead.FullError{Name: "secret-db"} }}).MustBuild()
	s := behind(t, false, p, ok)
	resp := s.do(t, "GET", "/")
	require.JSONEq(t, `{"title":"Service Unavailable","status":503,"detail":"The request was refused before it was handled.","retry_after":1}`, text(t, resp))
}

// Never retries, whatever the pipeline holds.
func TestMiddlewareNeverRetries(t *testing.T) {
	strict := retry.MustNew(retry.Config{Strict: true, Budget: budget.MustNewRatio(budget.RatioConfig{}), RetryIf: func(error) bool { return true }})
	for name, p := range map[string]*pipeline.Pipeline{
		"retry": retrying(), "StopIf never": retrying(func(c *retry.Config) { c.StopIf = func(error) bool { return false } }),
		"strict":  pipeline.For("x").Retry(strict).MustBuild(),
		"timeout": pipeline.For("x").Retry(soon()).AttemptTimeout(limit("a", 50*time.Millisecond)).MustBuild(),
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			s := behind(t, false, p, func(w http.ResponseWriter, r *http.Request) {
				runs++
				if name == "timeout" {
					<-r.Context().Done()
					return
				}
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(503)
			})
			resp := s.do(t, "GET", "/")
			require.Equal(t, 1, runs)
			if name == "timeout" {
				requireProblem(t, resp, 504, "")
				return
			}
			require.Equal(t, 503, resp.StatusCode)
			require.Empty(t, text(t, resp), "untouched")
		})
	}
}

// The request's deadline is the header's; 0 is a 504 before any layer; anything but ASCII digits in range is ignored.
func TestBudgetHeaderOfTheServer(t *testing.T) {
	for _, row := range []struct {
		header []string
		left   time.Duration // 0 = none
		late   bool
	}{
		{header: []string{"60000"}, left: time.Minute}, {header: nil}, {header: []string{"0"}, late: true}, {header: []string{"000"}, late: true},
		{header: []string{"-1"}}, {header: []string{"+5"}}, {header: []string{"1.5"}}, {header: []string{"1e3"}}, {header: []string{"abc"}},
		{header: []string{""}}, {header: []string{"99999999999999999999"}}, {header: []string{"٣"}}, {header: []string{"5", "6"}},
	} {
		guard := &rule{}
		ran := false
		s := behind(t, false, pipeline.For("x").With(guard).MustBuild(), func(w http.ResponseWriter, r *http.Request) {
			ran = true
			left, limited := budget.Left(r.Context(), nil)
			if limited != (row.left > 0) || limited && (left > row.left || left < row.left/2) {
				t.Errorf("%q: %v left, limited %v", row.header, left, limited)
			}
		})
		req := request(t, "GET", s.URL, nil)
		req.Header[budget.Header] = row.header
		resp, err := s.base.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, !row.late, ran, row.header)
		if row.late {
			requireProblem(t, resp, 504, "")
			require.Zero(t, guard.asked, "before any layer")
			continue
		}
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
}

// A budget that is over while the request waits for admission is a 504: the handler does not run.
func TestBudgetOverWhileWaiting(t *testing.T) {
	p := pipeline.For("x").With(waits{time.Hour}).MustBuild()
	s := behind(t, false, p, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	requireProblem(t, s.do(t, "GET", "/", budget.Header, "50"), 504, "")
}

// A handler that outlived its deadline with nothing written becomes a 504, whoever set the deadline; what it wrote stays.
func TestHandlerOutlivesItsDeadline(t *testing.T) {
	for name, row := range map[string]struct {
		p       *pipeline.Pipeline
		header  []string
		verdict string
	}{
		"attempt timeout": {p: pipeline.For("x").AttemptTimeout(limit("a", 50*time.Millisecond)).MustBuild(), verdict: "timed_out"},
		"total timeout":   {p: pipeline.For("x").Timeout(limit("t", 50*time.Millisecond)).MustBuild(), verdict: "caller_expired"},
		"budget header":   {p: pipeline.For("x").MustBuild(), header: []string{budget.Header, "50"}, verdict: "caller_expired"},
	} {
		for what, h := range map[string]func(w http.ResponseWriter, r *http.Request){
			"nothing": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "3") // of an answer that never came
				<-r.Context().Done()
			},
			"informational": func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(103)
				<-r.Context().Done()
			},
			"header":  func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done(); w.WriteHeader(201) },
			"body":    func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done(); _, _ = io.WriteString(w, "late") },
			"flushed": func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); <-r.Context().Done() },
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				guard := &rule{}
				b := pipeline.For("x").With(guard)
				switch name {
				case "attempt timeout":
					b = b.AttemptTimeout(limit("a", 50*time.Millisecond))
				case "total timeout":
					b = b.Timeout(limit("t", 50*time.Millisecond))
				}
				s := behind(t, false, b.MustBuild(), h)
				resp := s.do(t, "GET", "/", row.header...)
				switch what {
				case "nothing", "informational":
					requireProblem(t, resp, 504, "")
					require.Equal(t, []string{row.verdict}, guard.verdicts())
				case "header":
					require.Equal(t, 201, resp.StatusCode)
					require.Equal(t, []string{"returned"}, guard.verdicts())
				default:
					require.Equal(t, 200, resp.StatusCode)
					require.NotContains(t, text(t, resp), "time for the request")
					require.Equal(t, []string{"returned"}, guard.verdicts())
				}
				require.NoError(t, resp.Body.Close())
			})
		}
	}
}

// ≥ 500 and a panic are failures for the breaker, everything below is not; what the handler wrote passes untouched.
func TestHandlersAnswerPassesUntouched(t *testing.T) {
	for code := 200; code < 600; code += 3 {
		guard := &rule{}
		h := httpx.Middleware(pipeline.For("x").Retry(soon()).With(guard).MustBuild())(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Own", "1")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "own")
		}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		require.Equal(t, code, w.Code)
		require.Equal(t, "own", w.Body.String())
		require.Equal(t, "1", w.Header().Get("X-Own"))
		want := "returned"
		if code >= 500 {
			want = "failed"
		}
		require.Equal(t, []string{want}, guard.verdicts(), code)
	}
}

// The Retry-After of a handler's 5xx feeds the pipeline's cooldown.
func TestHandlersRetryAfterFeedsTheCooldown(t *testing.T) {
	p := pipeline.For("x").Cooldown(cooldown.MustNew(cooldown.Config{})).MustBuild()
	s := behind(t, false, p, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "40")
		w.WriteHeader(503)
	})
	require.Empty(t, text(t, s.do(t, "GET", "/")))
	requireProblem(t, s.do(t, "GET", "/"), 503, "40")
}

// A panic settles everything as a failure and goes on, http.ErrAbortHandler included.
func TestHandlerPanics(t *testing.T) {
	for _, value := range []any{"boom", http.ErrAbortHandler} {
		guard, slots := &rule{}, bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		h := httpx.Middleware(pipeline.For("x").Retry(soon()).With(guard).Bulkhead(slots).MustBuild())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(value) }))
		w := httptest.NewRecorder()
		require.PanicsWithValue(t, value, func() { h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)) })
		require.Equal(t, []string{"panicked"}, guard.verdicts())
		require.Zero(t, slots.InUse())
		require.False(t, w.Flushed)
		require.Empty(t, w.Body.String())
	}
	s := behind(t, false, pipeline.For("x").MustBuild(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := s.base.RoundTrip(request(t, "GET", s.URL, nil))
	require.Error(t, err, "the connection is aborted")
}

// A client that left is neutral for the guards; nothing more is written.
func TestClientLeft(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			guard := &rule{}
			inside := make(chan struct{})
			s := behind(t, h2, pipeline.For("x").AttemptTimeout(limit("a", time.Minute)).With(guard).MustBuild(), func(w http.ResponseWriter, r *http.Request) {
				close(inside)
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-inside; cancel() }()
			_, err := s.base.RoundTrip(request(t, "GET", s.URL, nil).WithContext(ctx))
			require.ErrorIs(t, err, context.Canceled)
			eventually(t, func() bool { return len(guard.verdicts()) == 1 }, "settled")
			require.Equal(t, []string{"caller_cancelled"}, guard.verdicts())
		})
	}
	t.Run("before the handler ran", func(t *testing.T) {
		h := httpx.Middleware(pipeline.For("x").MustBuild())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("ran") }))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		requireProblem(t, w.Result(), 503, "")
	})
	t.Run("after an empty success", func(t *testing.T) { // a half-closed connection cancels, and its client still reads
		ctx, cancel := context.WithCancel(t.Context())
		h := httpx.Middleware(pipeline.For("x").MustBuild())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		require.Equal(t, 200, w.Code)
		require.Empty(t, w.Body.String())
	})
}

// What is neither a refusal nor a matter of time is a 500 that says nothing; a guard that is broken cannot admit.
func TestBrokenPipeline(t *testing.T) {
	unbounded := retrying(func(c *retry.Config) { c.MaxAttempts = retry.Unlimited })
	requireProblem(t, behind(t, false, unbounded, ok).do(t, "GET", "/"), 500, "")
	broken := pipeline.For("x").With(&rule{acquire: func(int) error { return errDown }}).MustBuild()
	requireProblem(t, behind(t, false, broken, ok).do(t, "GET", "/"), 503, "1")
}

// Bad input is a 500 for every request: the one problem text that is not fixed, since it is there that the mistake is read.
func TestMiddlewareMisconfigured(t *testing.T) {
	p := pipeline.For("x").MustBuild()
	for want, h := range map[string]http.Handler{
		"the pipeline is nil":                 httpx.Middleware(nil)(http.HandlerFunc(ok)),
		"the handler is nil":                  httpx.Middleware(p)(nil),
		"RetryStatus is given to Middleware":  httpx.Middleware(p, httpx.RetryStatus(500))(http.HandlerFunc(ok)),
		"Safety is given to Middleware":       httpx.Middleware(p, httpx.Safety(func(*http.Request) retry.Safety { return retry.Unsafe }))(http.HandlerFunc(ok)),
		"PerHost is given to Middleware":      httpx.Middleware(p, httpx.PerHost(func(string) *pipeline.Pipeline { return nil }, 1))(http.HandlerFunc(ok)),
		"Clock is a nil *clockwork.FakeClock": httpx.Middleware(p, httpx.Clock(nilClock))(http.HandlerFunc(ok)),
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		require.Contains(t, w.Body.String(), want)
		requireProblem(t, w.Result(), 500, "")
	}
}

// Expect: 100-continue is answered before the body is sent: a refusal spares it.
func TestRefusalSparesTheBody(t *testing.T) {
	s := behind(t, false, pipeline.For("x").With(&rule{acquire: func(int) error { return closed{} }}).MustBuild(), ok)
	s.base.ExpectContinueTimeout = 10 * time.Second
	sent := &watched{Reader: strings.NewReader("hello")}
	req := request(t, "PUT", s.URL, sent)
	req.Header.Set("Expect", "100-continue")
	resp, err := s.base.RoundTrip(req)
	require.NoError(t, err)
	requireProblem(t, resp, 503, "1")
	require.Zero(t, sent.reads.Load())
}
