package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// server answers with one status after another, the last one for ever; 429 and 503 ask for a pause of 7 s.
type server struct {
	statuses []int
	requests int
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	status := s.statuses[min(s.requests, len(s.statuses)-1)]
	s.requests++
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("hello")), Request: req}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		resp.Header.Set("Retry-After", "7")
	}
	return resp, nil
}

func TestTheOtherSidesWaitIsSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{statuses: []int{503, 429, 200}}
		p := pipeline.For("p").Retry(retry.MustNew(retry.Config{Jitter: retry.None})).MustBuild()
		began := time.Now()
		text, err := get(t.Context(), p, &http.Client{Transport: s}, "http://stock/")
		require.NoError(t, err)
		assert.Equal(t, "hello", string(text))
		assert.Equal(t, 14*time.Second, time.Since(began))
	})
}

func TestWhatIsNoFailureOpensNoCircuit(t *testing.T) {
	for _, c := range []struct {
		status, requests, counted int
		want                      breaker.State
	}{
		{404, 5, 5, breaker.Closed},
		{429, 1, 0, breaker.Closed}, // then the cooldown refuses
		{500, 3, 0, breaker.Open},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{statuses: []int{c.status}}
			b := breaker.MustNew(breaker.Config{Consecutive: 3})
			p := pipeline.For("p").Breaker(b).Cooldown(cooldown.MustNew(cooldown.Config{})).
				Retry(retry.MustNew(retry.Config{MaxAttempts: 2, MaxRetryAfter: time.Second, Backoff: retry.Immediate})).MustBuild()
			for range 5 {
				_, err := get(t.Context(), p, &http.Client{Transport: s}, "http://stock/")
				_, ok := errors.AsType[*statusError](err)
				assert.True(t, ok || rejection.Is(err))
			}
			assert.Equal(t, c.requests, s.requests, "%d", c.status)
			assert.Equal(t, c.want, b.State(), "%d", c.status)
			assert.Equal(t, c.counted, b.Snapshot().Calls, "%d", c.status)
		})
	}
}

func TestIsFailureLeavesOutWhatIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newStock()
		p := pipeline.For("p").Breaker(b).MustBuild()
		for range 3 {
			assert.ErrorIs(t, p.Run(t.Context(), func(context.Context) error { return errNotFound }), errNotFound)
		}
		assert.Equal(t, breaker.Closed, b.State())
		for range 3 {
			assert.Error(t, p.Run(t.Context(), down))
		}
		assert.Equal(t, breaker.Open, b.State())
	})
}

func TestTheTransportRetriesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{statuses: []int{503, 200}}
		resp, err := newClient(s).Get("http://stock/")
		require.NoError(t, err)
		defer resp.Body.Close()
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Equal(t, 2, s.requests)
	})
}

func TestTheMiddlewareAnswersForTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("p").Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})).MustBuild()
		inner := httptest.NewRecorder()
		var handler http.Handler
		handler = limited(p, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { handler.ServeHTTP(inner, req) }))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		assert.Equal(t, http.StatusServiceUnavailable, inner.Code)
		assert.Equal(t, "1", inner.Header().Get("Retry-After"))
	})
}
