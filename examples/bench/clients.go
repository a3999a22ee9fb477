package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// memory is a server that answers at once, in this goroutine: as job's fn does, 503 so often and then 200. The job is the caller's,
// and comes with the context.
type memory struct{}

type jobKey struct{}

func (memory) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-req.Context().Done(): // as every transport waits for it: whoever limits the time pays for a timer
		return nil, context.Cause(req.Context())
	default:
	}
	code, text := http.StatusOK, "a body"
	if _, err := req.Context().Value(jobKey{}).(*job).fn(req.Context()); err != nil {
		code, text = http.StatusServiceUnavailable, "try again"
	}
	return &http.Response{StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: req}, nil
}

const address = "http://bank.test/charge"

// Clients of the same server: ours in three widths of protection, and net/http without and with its own limit.
const (
	clientGuarded = "fairlead, all guards"
	clientTimed   = "fairlead, a timeout"
	clientBoth    = "fairlead, all guards and a timeout"
	plainClient   = "net/http"
	plainTimed    = "net/http, Client.Timeout"
)

// clients are a GET each, its body read and closed.
func clients(fails int) []contender {
	client := func(name, setup string, make func() func(context.Context) (*http.Response, error)) contender {
		return contender{name: name, setup: setup, begin: func() work {
			get := make()
			return work{run: func(n int, j *job) {
				ctx := context.WithValue(context.Background(), jobKey{}, j)
				for range n {
					j.ended(read(ctx, j, get))
				}
			}}
		}}
	}
	through := func(make func() *http.Client) func() func(context.Context) (*http.Response, error) {
		return func() func(context.Context) (*http.Response, error) {
			c := make()
			return func(ctx context.Context) (*http.Response, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
				if err != nil {
					return nil, err
				}
				return c.Do(req)
			}
		}
	}
	guarded := func(build func() *pipeline.Pipeline) func() func(context.Context) (*http.Response, error) {
		return through(func() *http.Client { return &http.Client{Transport: httpx.NewTransport(build(), memory{})} })
	}
	full := func(s shape) func() *pipeline.Pipeline {
		return func() *pipeline.Pipeline { p, _ := fairleadPipeline(s); return p }
	}
	all := []contender{
		client(ours, "http.Client with httpx.NewTransport(retry alone: 3 attempts, retry.Immediate, NoBudget)", guarded(func() *pipeline.Pipeline {
			return pipeline.For("bank").Retry(fairleadRetry(false)).MustBuild()
		})),
		client(clientGuarded, "the same with the full pipeline: retry, breaker, rate limit, bulkhead", guarded(full(shape{}))),
		client(clientTimed, "the same with AttemptTimeout (1 min) alone and no retry", guarded(func() *pipeline.Pipeline {
			return pipeline.For("bank").AttemptTimeout(timeout.MustNew(timeout.Config{Limit: limit})).MustBuild()
		})),
		client(clientBoth, "the same with the full pipeline and AttemptTimeout (1 min)", guarded(full(shape{attempt: limit}))),
		client("go-retryablehttp", "retryablehttp.Client{RetryMax 2, Backoff 0, no Logger}; Do", func() func(context.Context) (*http.Response, error) {
			c := retryablehttp.NewClient()
			c.HTTPClient, c.Logger, c.RetryMax = &http.Client{Transport: memory{}}, nil, attempts-1
			c.Backoff = func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 }
			return func(ctx context.Context) (*http.Response, error) {
				req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, address, nil)
				if err != nil {
					return nil, err
				}
				return c.Do(req)
			}
		}),
		client("failsafehttp", "http.Client with failsafehttp.NewRoundTripper(NewRetryPolicyBuilder, 3 attempts, no delay)", through(func() *http.Client {
			return &http.Client{Transport: failsafehttp.NewRoundTripper(memory{}, failsafehttp.NewRetryPolicyBuilder().WithMaxAttempts(attempts).Build())}
		})),
	}
	if fails > 0 { // who does not retry does not do it
		return slices.DeleteFunc(all, func(c contender) bool { return c.name == clientTimed })
	}
	return append(all,
		client(plainClient, "http.Client, no retry", through(func() *http.Client { return &http.Client{Transport: memory{}} })),
		client(plainTimed, "http.Client{Timeout 1 min}, no retry", through(func() *http.Client { return &http.Client{Transport: memory{}, Timeout: limit} })))
}

var errStatus = errors.New("not 200")

func read(ctx context.Context, j *job, get func(context.Context) (*http.Response, error)) (int, error) {
	resp, err := get(ctx)
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
