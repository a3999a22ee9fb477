package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// memory is a server that answers at once, in this goroutine: as job's fn does, 503 so often and then 200.
type memory struct{ job *job }

func (m *memory) RoundTrip(req *http.Request) (*http.Response, error) {
	code, text := http.StatusOK, "a body"
	if _, err := m.job.fn(req.Context()); err != nil {
		code, text = http.StatusServiceUnavailable, "try again"
	}
	return &http.Response{StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: req}, nil
}

const address = "http://bank.test/charge"

// clients are a GET each, its body read and closed; one goroutine at a time, since memory has one job.
func clients(fails int) []contender {
	client := func(name, setup string, make func(*memory) func(context.Context) (*http.Response, error)) contender {
		return contender{name: name, setup: setup, begin: func() work {
			m := &memory{}
			get := make(m)
			return work{run: func(n int, j *job) {
				m.job = j
				for range n {
					j.ended(read(j, get))
				}
			}}
		}}
	}
	through := func(around func(*memory) http.RoundTripper) func(*memory) func(context.Context) (*http.Response, error) {
		return func(m *memory) func(context.Context) (*http.Response, error) {
			c := &http.Client{Transport: around(m)}
			return func(ctx context.Context) (*http.Response, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
				if err != nil {
					return nil, err
				}
				return c.Do(req)
			}
		}
	}
	all := []contender{
		client(ours, "http.Client with httpx.NewTransport(retry alone: 3 attempts, retry.Immediate, NoBudget)", through(func(m *memory) http.RoundTripper {
			return httpx.NewTransport(pipeline.For("bank").Retry(fairleadRetry(false)).MustBuild(), m)
		})),
		client("go-retryablehttp", "retryablehttp.Client{RetryMax 2, Backoff 0, no Logger}; Do", func(m *memory) func(context.Context) (*http.Response, error) {
			c := retryablehttp.NewClient()
			c.HTTPClient, c.Logger, c.RetryMax = &http.Client{Transport: m}, nil, attempts-1
			c.Backoff = func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 }
			return func(ctx context.Context) (*http.Response, error) {
				req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, address, nil)
				if err != nil {
					return nil, err
				}
				return c.Do(req)
			}
		}),
		client("failsafehttp", "http.Client with failsafehttp.NewRoundTripper(NewRetryPolicyBuilder, 3 attempts, no delay)", through(func(m *memory) http.RoundTripper {
			return failsafehttp.NewRoundTripper(m, failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(attempts).Build())
		})),
	}
	if fails > 0 {
		return all
	}
	return append(all, client("net/http", "http.Client, no retry", through(func(m *memory) http.RoundTripper { return m })))
}

var errStatus = errors.New("not 200")

func read(j *job, get func(context.Context) (*http.Response, error)) (int, error) {
	resp, err := get(context.Background())
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, errStatus
	}
	return j.tries, nil
}
