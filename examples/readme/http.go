package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
	"github.com/fairlead/fairlead/rejection"
)

// statusError is a response that is no success. RetryAfter is how the other side's wait gets in; Judge is what guards make of it.
type statusError struct {
	status int
	wait   time.Duration
	asked  bool
}

func (e *statusError) Error() string                     { return "the server says: " + http.StatusText(e.status) }
func (e *statusError) RetryAfter() (time.Duration, bool) { return e.wait, e.asked }
func (e *statusError) Judge(o leaf.Outcome) leaf.Outcome {
	switch {
	case e.status == http.StatusTooManyRequests:
		o.Verdict = leaf.Ignored // it is about us: neither a failure nor a success; the cooldown hears the wait all the same
	case e.status < 500 && o.Verdict == leaf.Returned:
		o.Err = nil // a 404 is an answer: a success
	}
	return o
}

func fetch(client *http.Client, req *http.Request) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		return io.ReadAll(resp.Body)
	}
	wait, asked := rejection.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	err = &statusError{resp.StatusCode, wait, asked}
	if resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
		err = retry.Permanent(err) // the retry does not ask Judge: a 404 would be retried
	}
	return nil, err
}

var errNotFound = errors.New("not found")

func newStock() *breaker.Breaker {
	return breaker.MustNew(breaker.Config{Name: "stock", Consecutive: 3, IsFailure: func(err error) bool {
		return err != nil && !errors.Is(err, errNotFound) // what is no failure is a success
	}})
}

func newClient(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: httpx.NewTransport(nil, base, httpx.PerHost(func(host string) *pipeline.Pipeline {
		return pipeline.For(host).
			Retry(retry.MustNew(retry.Config{Name: host})). // of what may be repeated: GET, PUT, …; nothing else
			Breaker(breaker.MustNew(breaker.Config{Name: host})).MustBuild()
	}, 100))} // hosts at most
}

// limited answers for handler where p refuses: 429 or 503, with Retry-After; 504 where the caller's time is over.
func limited(p *pipeline.Pipeline, handler http.Handler) http.Handler {
	return httpx.Middleware(p)(handler)
}

// get is fetch behind a pipeline: use the ctx that the callback is given.
func get(ctx context.Context, p *pipeline.Pipeline, client *http.Client, url string) ([]byte, error) {
	return pipeline.Do(ctx, p, func(ctx context.Context) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, retry.Permanent(err)
		}
		return fetch(client, req)
	})
}
