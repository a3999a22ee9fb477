package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// Which statuses are retried, and what guards are told of every one, in the set or not.
func TestStatuses(t *testing.T) {
	standard := []int{408, 425, 429, 500, 502, 503, 504}
	for _, row := range []struct {
		set  []int
		opts []httpx.Option
	}{
		{standard, nil},
		{[]int{404, 503, 202}, []httpx.Option{httpx.RetryStatus(404, 503, 202)}},
		{nil, []httpx.Option{httpx.RetryStatus()}},
	} {
		for code := 200; code < 600; code++ {
			for method, replayed := range map[string]bool{"GET": true, "POST": false} {
				guard := &rule{}
				base := &answers{list: []func(*http.Request) (*http.Response, error){status(code, nil)}}
				p := pipeline.For("x").Retry(soon(func(c *retry.Config) { c.MaxAttempts = 2 })).With(guard).MustBuild()
				resp, err := httpx.NewTransport(p, base, row.opts...).RoundTrip(request(t, method, "http://host", nil))
				require.NoError(t, err)
				require.Equal(t, code, resp.StatusCode)
				runs := 1
				if replayed && slices.Contains(row.set, code) {
					runs = 2
				}
				told := "returned"
				switch {
				case code == 429:
					told = "ignored"
				case code >= 500:
					told = "failed"
				}
				require.Equal(t, slices.Repeat([]string{told}, runs), guard.verdicts(), "%s %d %v", method, code, row.set)
			}
		}
	}
}

// Transport errors, timeouts and 5xx are failures for the breaker, 429 is ignored, and other 4xx are successes.
func TestBreakerJudges(t *testing.T) {
	for name, row := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		method string
		opens  bool
	}{
		"503": {status(503, nil), "GET", true}, "501, not retried": {status(501, nil), "GET", true},
		"500 to POST": {status(500, nil), "POST", true}, "transport error": {fails(errDown), "GET", true},
		"transport error of POST": {fails(errDown), "POST", true},
		"timeout": {func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, "POST", true},
		"429": {status(429, nil), "GET", false}, "408": {status(408, nil), "GET", false}, "404": {status(404, nil), "GET", false},
		"200": {status(200, nil), "GET", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.MustNew(breaker.Config{Consecutive: 4})
			p := pipeline.For("x").Breaker(b).AttemptTimeout(limit("a", time.Hour)).MustBuild()
			if name == "timeout" {
				p = pipeline.For("x").Breaker(b).AttemptTimeout(limit("a", time.Millisecond)).MustBuild()
			}
			tr := httpx.NewTransport(p, &answers{list: []func(*http.Request) (*http.Response, error){row.answer}})
			for range 4 {
				resp, err := tr.RoundTrip(request(t, row.method, "http://host", nil))
				require.Equal(t, err == nil, resp != nil)
			}
			require.Equal(t, row.opens, b.State() == breaker.Open)
		})
	}
}

// A 429 feeds the cooldown: the next call is refused without a request.
func Test429FeedsTheCooldown(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		cool := cooldown.MustNew(cooldown.Config{Name: "api"})
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(429, nil, "Retry-After", "50")}}
		tr := httpx.NewTransport(pipeline.For("x").Cooldown(cool).MustBuild(), base)
		resp, err := tr.RoundTrip(request(t, method, "http://host", nil))
		require.NoError(t, err)
		require.Equal(t, 429, resp.StatusCode)
		require.InDelta(t, 50*time.Second, cool.Wait(), float64(10*time.Second))
		_, err = tr.RoundTrip(request(t, method, "http://host", nil))
		require.ErrorIs(t, err, cooldown.ErrCooling)
		require.Equal(t, 1, base.runs())
	}
}

// RetryIf and Observe see a *StatusError.
func TestStatusErrorIsWhatTheRetrySees(t *testing.T) {
	var seen []error
	p := retrying(func(c *retry.Config) {
		c.RetryIf = func(err error) bool {
			seen = append(seen, err)
			e, ok := errors.AsType[*httpx.StatusError](err)
			return ok && e.Header.Get("X-Should-Retry") != "false"
		}
	})
	base := &answers{list: []func(*http.Request) (*http.Response, error){
		status(503, nil, "Retry-After", "0"), status(503, body("last"), "X-Should-Retry", "false"),
	}}
	resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
	require.NoError(t, err)
	require.Equal(t, "last", text(t, resp))
	require.Len(t, seen, 2)
	require.EqualError(t, seen[0], "httpx: status 503 Service Unavailable")
	require.EqualError(t, &httpx.StatusError{Code: 599}, "httpx: status 599")
}

// C31: exactly the cap is slept, one second more is given up, and so is a wait past the deadline.
func TestRetryAfterIsALowerBoundWithACap(t *testing.T) {
	for _, row := range []struct {
		value    string
		deadline time.Duration
		second   time.Duration // when the second request is sent; 0 = never
	}{
		{value: "60", second: 60 * time.Second},
		{value: "61"}, {value: "3600"},
		{value: "30", deadline: 10 * time.Second},
		{value: "5", deadline: 10 * time.Second, second: 5 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s in %v", row.value, row.deadline), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var at []time.Duration
				first := body("slow down")
				base := &answers{list: []func(*http.Request) (*http.Response, error){status(429, first, "Retry-After", row.value), status(200, nil)}}
				note := tripper(func(r *http.Request) (*http.Response, error) {
					at = append(at, time.Since(began))
					return base.RoundTrip(r)
				})
				p := pipeline.For("x").Retry(retry.MustNew(retry.Config{
					Backoff: retry.Constant(time.Second), Jitter: retry.None, MaxRetryAfter: time.Minute,
				})).MustBuild()
				ctx := t.Context()
				if row.deadline > 0 {
					with, cancel := context.WithTimeout(ctx, row.deadline)
					defer cancel()
					ctx = with
				}
				resp, err := httpx.NewTransport(p, note).RoundTrip(request(t, "GET", "http://host", nil).WithContext(ctx))
				require.NoError(t, err)
				if row.second > 0 {
					require.Equal(t, 200, resp.StatusCode)
					require.Equal(t, []time.Duration{0, row.second}, at)
					require.EqualValues(t, 1, first.closes.Load())
					return
				}
				require.Equal(t, 429, resp.StatusCode)
				require.Zero(t, time.Since(began))
				require.Zero(t, first.reads.Load(), "undrained")
				require.Equal(t, "slow down", text(t, resp))
				<-time.After(2 * time.Hour)
				require.Equal(t, []time.Duration{0}, at)
			})
		})
	}
}

// Every form of Retry-After, through a real client and server; the clock stands still in 2024.
func TestRetryAfterForms(t *testing.T) {
	at := time.Date(2024, 11, 6, 8, 49, 37, 0, time.UTC)
	for _, row := range []struct {
		values []string
		wait   time.Duration // that the policy asks of the error
		asked  bool
	}{
		{[]string{"7"}, 7 * time.Second, true},
		{[]string{"0"}, 0, true},
		{[]string{"Wed, 06 Nov 2024 08:49:42 GMT"}, 5 * time.Second, true},
		{[]string{"Wednesday, 06-Nov-24 08:49:42 GMT"}, 5 * time.Second, true},
		{[]string{"Wed Nov  6 08:49:42 2024"}, 5 * time.Second, true},
		{[]string{"Wed, 06 Nov 2024 08:49:30 GMT"}, 0, true},
		{[]string{"-5"}, 0, false}, {[]string{"1.5"}, 0, false}, {[]string{"soon"}, 0, false}, {[]string{""}, 0, false}, {nil, 0, false},
		{[]string{"99999999999999999999"}, 1<<63 - 1, true},
		{[]string{"3", "9"}, 9 * time.Second, true}, {[]string{"9", "3"}, 9 * time.Second, true}, {[]string{"x", "3"}, 3 * time.Second, true},
	} {
		s := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Retry-After"] = row.values
			w.WriteHeader(503)
		})
		var got []error
		p := retrying(func(c *retry.Config) {
			c.Clock = clockwork.NewFakeClockAt(at)
			c.StopIf = func(err error) bool { got = append(got, err); return true }
		})
		resp, err := s.client(p, httpx.Clock(clockwork.NewFakeClockAt(at))).Get(s.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Len(t, got, 1)
		e, ok := errors.AsType[*httpx.StatusError](got[0])
		require.True(t, ok)
		wait, asked := e.RetryAfter()
		require.Equal(t, row.wait, wait, row.values)
		require.Equal(t, row.asked, asked, row.values)
	}
}
