package httpx_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// GET, HEAD, OPTIONS, TRACE, PUT, DELETE, "", any method with an Idempotency-Key, and what Safety declares; no body, or GetBody.
func TestRetriesOnlyWhatMayBeRepeated(t *testing.T) {
	declare := httpx.Safety(func(r *http.Request) retry.Safety {
		if r.URL.Path == "/safe" {
			return retry.ReadOnly("search", time.Minute)
		}
		return retry.Unsafe
	})
	key := http.Header{"Idempotency-Key": {"k1"}}
	for _, row := range []struct {
		method, path string
		header       http.Header
		body         string // "" = none, "replay" has GetBody, "once" has not, "nobody" is http.NoBody
		runs         int
	}{
		{method: "GET", runs: 3}, {method: "HEAD", runs: 3}, {method: "OPTIONS", runs: 3}, {method: "TRACE", runs: 3},
		{method: "PUT", runs: 3}, {method: "DELETE", runs: 3}, {method: "", runs: 3},
		{method: "POST", runs: 1}, {method: "PATCH", runs: 1}, {method: "CONNECT", runs: 1}, {method: "get", runs: 1}, {method: "PROPFIND", runs: 1},
		{method: "POST", header: key, runs: 3}, {method: "PATCH", header: key, body: "replay", runs: 3},
		{method: "POST", header: key, body: "once", runs: 1},
		{method: "POST", header: http.Header{"Idempotency-Key": {}}, runs: 3},
		{method: "POST", header: http.Header{"Idempotency-Key": {""}}, runs: 1},
		{method: "POST", path: "/safe", runs: 3}, {method: "POST", path: "/safe", body: "replay", runs: 3},
		{method: "POST", path: "/safe", body: "once", runs: 1}, {method: "GET", path: "/other", runs: 3},
		{method: "PUT", body: "replay", runs: 3}, {method: "PUT", body: "once", runs: 1},
		{method: "PUT", body: "nobody", runs: 3}, {method: "POST", body: "nobody", runs: 1},
	} {
		for kind, answer := range map[string]func(*http.Request) (*http.Response, error){"status": status(503, nil), "error": fails(errDown)} {
			base := &answers{list: []func(*http.Request) (*http.Response, error){answer}}
			req := request(t, "GET", "http://host"+row.path, nil)
			req.Method = row.method
			maps.Copy(req.Header, row.header)
			switch row.body {
			case "replay", "once":
				req.Body = body("hello")
				if row.body == "replay" {
					req.GetBody = func() (io.ReadCloser, error) { return body("hello"), nil }
				}
			case "nobody":
				req.Body = http.NoBody
			}
			resp, err := httpx.NewTransport(retrying(), base, declare).RoundTrip(req)
			require.Equal(t, row.runs, base.runs(), "%+v %s", row, kind)
			if kind == "status" {
				require.NoError(t, err)
				require.Equal(t, 503, resp.StatusCode)
				continue
			}
			require.ErrorIs(t, err, errDown)
			if row.runs == 1 {
				require.Equal(t, errDown, err, "unchanged: no mark of this pipeline may stop somebody else's retry")
			}
		}
	}
}

// C32: each attempt sends the whole body, GetBody is called once per retry, and every body is closed.
func TestBodyIsSentWholeAndClosed(t *testing.T) {
	list := []func(*http.Request) (*http.Response, error){status(503, nil), status(503, nil), status(200, nil)}
	t.Run("with GetBody", func(t *testing.T) {
		base := &answers{list: list}
		bodies := []*watched{body("hello")}
		req := request(t, "PUT", "http://host", bodies[0])
		req.ContentLength = 5
		req.GetBody = func() (io.ReadCloser, error) {
			bodies = append(bodies, body("hello"))
			return bodies[len(bodies)-1], nil
		}
		resp, err := httpx.NewTransport(retrying(), base).RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, []string{"hello", "hello", "hello"}, base.sent)
		require.Len(t, bodies, 3, "GetBody is called attempts-1 times")
		for i, b := range bodies {
			require.EqualValues(t, 1, b.closes.Load(), i)
			require.EqualValues(t, 5, base.seen[i].ContentLength)
		}
		require.Same(t, base.seen[0].Body, bodies[0], "attempt 1 sends the caller's own Body")
	})
	t.Run("a plain stream", func(t *testing.T) {
		base := &answers{list: list}
		b := body("hello")
		resp, err := httpx.NewTransport(retrying(), base).RoundTrip(request(t, "POST", "http://host", b))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, []string{"hello"}, base.sent)
		require.EqualValues(t, 1, b.closes.Load())
	})
	t.Run("GetBody fails", func(t *testing.T) {
		errG, first, guard := errors.New("gone"), body("unavailable"), &rule{}
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
		b := body("hello")
		req := request(t, "PUT", "http://host", b)
		req.GetBody = func() (io.ReadCloser, error) { return nil, errG }
		p := pipeline.For("client").Retry(soon()).With(guard).MustBuild()
		resp, err := httpx.NewTransport(p, base).RoundTrip(req)
		require.Nil(t, resp)
		require.ErrorIs(t, err, errG)
		require.EqualError(t, err, "httpx: GetBody for attempt 2: gone")
		require.Equal(t, 1, base.runs())
		require.EqualValues(t, 1, b.closes.Load())
		require.EqualValues(t, 1, first.closes.Load())
		require.Equal(t, []string{"failed", "not_run"}, guard.verdicts(), "nothing was sent: the second says nothing of the downstream")
	})
}

// A GetBody that panics or gives nothing leaves nothing open.
func TestGetBodyMisbehaves(t *testing.T) {
	for name, again := range map[string]func() (io.ReadCloser, error){
		"panics":  func() (io.ReadCloser, error) { panic("GetBody") },
		"nothing": func() (io.ReadCloser, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			first, own, guard := body("busy"), body("hello"), &rule{}
			base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first), status(200, nil)}}
			req := request(t, "PUT", "http://host", own)
			req.GetBody = again
			tr := httpx.NewTransport(pipeline.For("x").Retry(soon()).With(guard).AttemptTimeout(limit("a", time.Minute)).MustBuild(), base)
			if name == "panics" {
				require.PanicsWithValue(t, "GetBody", func() { _, _ = tr.RoundTrip(req) })
				require.Equal(t, []string{"failed", "panicked"}, guard.verdicts())
			} else {
				_, err := tr.RoundTrip(req)
				require.EqualError(t, err, "httpx: GetBody for attempt 2: it returned neither a body nor an error")
				require.Equal(t, []string{"failed", "not_run"}, guard.verdicts())
				require.Equal(t, 1, base.runs(), "no request without the body that the first one had")
			}
			require.EqualValues(t, 1, own.closes.Load())
			require.EqualValues(t, 1, first.closes.Load())
		})
	}
}

// The caller's request is never modified, and every body is closed, also when the call is refused.
func TestRequestIsUnchangedAndItsBodyClosedOnce(t *testing.T) {
	refusing := &rule{acquire: func(int) error { return closed{} }}
	for name, row := range map[string]struct {
		p    *pipeline.Pipeline
		opts []httpx.Option
		runs int
	}{
		"plain":         {p: pipeline.For("x").MustBuild(), runs: 1},
		"with timeouts": {p: pipeline.For("x").Timeout(limit("t", time.Hour)).AttemptTimeout(limit("a", time.Minute)).Retry(soon()).MustBuild(), runs: 3},
		"refused":       {p: pipeline.For("x").Timeout(limit("t", time.Hour)).With(refusing).MustBuild()},
		"misconfigured": {p: nil},
		"no host":       {p: nil, opts: []httpx.Option{httpx.PerHost(func(string) *pipeline.Pipeline { return nil }, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, nil)}}
			own := body("hello")
			req := request(t, "PUT", "http://host/path", own)
			req.Header.Set("X-Own", "1")
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }
			before, header := *req, req.Header.Clone()
			_, err := httpx.NewTransport(row.p, base, row.opts...).RoundTrip(req)
			require.Equal(t, row.runs == 0, err != nil)
			require.Equal(t, row.runs, base.runs())
			require.EqualValues(t, 1, own.closes.Load())
			require.Equal(t, header, req.Header)
			require.Same(t, own, req.Body)
			require.Equal(t, before.Context(), req.Context())
			require.Equal(t, before.URL, req.URL)
			for _, r := range base.seen {
				require.Equal(t, "1", r.Header.Get("X-Own"))
				require.Equal(t, name == "with timeouts", r.Header.Get(budget.Header) != "")
			}
		})
	}
}

// To a Strict policy methods and keys are declarations; what is not declared is refused before anything is sent.
func TestStrictPolicy(t *testing.T) {
	strict := func() *pipeline.Pipeline {
		return retrying(func(c *retry.Config) {
			c.Strict, c.NoBudget, c.Budget = true, false, budget.MustNewRatio(budget.RatioConfig{})
			c.RetryIf = func(error) bool { return true }
		})
	}
	base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, nil), status(200, nil)}}
	resp, err := httpx.NewTransport(strict(), base).RoundTrip(request(t, "GET", "http://host", nil))
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, 2, base.runs())

	b := body("hello")
	_, err = httpx.NewTransport(strict(), base).RoundTrip(request(t, "POST", "http://host", b))
	stop, ok := errors.AsType[*retry.Error](err)
	require.True(t, ok)
	require.Equal(t, retry.UnsafeReplay, stop.Reason)
	require.Equal(t, 2, base.runs(), "nothing was sent")
	require.EqualValues(t, 1, b.closes.Load())
}

// A declaration that has expired starts no retry: the caller gets what there is.
func TestNoRetryAfterTheDeclarationExpired(t *testing.T) {
	base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, body("busy"))}}
	declare := httpx.Safety(func(*http.Request) retry.Safety { return retry.ReadOnly("search", time.Microsecond) })
	resp, err := httpx.NewTransport(retrying(), base, declare).RoundTrip(request(t, "POST", "http://host", nil))
	require.NoError(t, err)
	require.Equal(t, "busy", text(t, resp))
	require.Equal(t, 1, base.runs())
}
