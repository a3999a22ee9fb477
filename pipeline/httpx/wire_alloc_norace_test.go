//go:build !race

package httpx_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// frugal is a server on loopback that allocates nothing per request, so that what is counted beside it is the client's.
func frugal(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept() // the client keeps one
		if err != nil {
			return
		}
		defer conn.Close()
		answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\nContent-Type: text/plain\r\n\r\n" + text1k)
		buf, n := make([]byte, 4096), 0
		for {
			m, err := conn.Read(buf[n:])
			if err != nil {
				return
			}
			if n += m; bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
				if _, err := conn.Write(answer); err != nil {
					return
				}
				n = 0
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return "http://" + l.Addr().String()
}

// Over a real connection net/http waits for the context's end, so that a timer is set and contexts are tied together, whoever
// limits the time. Guards add nothing. A timeout adds what context.WithTimeout does and five more: the attempt's own context
// and the error that names it (1 each), the copy of the request (1) and of its header's map (2), which the budget goes into. A second
// timeout adds its context (1).
func TestAllocsOverARealConnection(t *testing.T) {
	count := func(timeout, given time.Duration, p *pipeline.Pipeline) float64 {
		url, base := frugal(t), &http.Transport{}
		defer base.CloseIdleConnections()
		client := &http.Client{Timeout: timeout, Transport: base}
		if p != nil {
			client.Transport = httpx.NewTransport(p, base)
		}
		return testing.AllocsPerRun(300, func() { readWhole(t, client, url, given) })
	}
	plain := count(0, 0, nil)
	byContext, byClient := count(0, time.Minute, nil), count(time.Minute, 0, nil)
	guards := count(0, 0, guarded().MustBuild())
	total, attempt, both := count(0, 0, withTotal().MustBuild()), count(0, 0, withAttempt().MustBuild()), count(0, 0, withBoth().MustBuild())
	t.Logf("beyond net/http's own %v: context.WithTimeout %v, Client.Timeout %v; guards %v, and a total timeout %v, an attempt timeout %v, both %v",
		plain, byContext-plain, byClient-plain, guards-plain, total-plain, attempt-plain, both-plain)
	require.Equal(t, plain, guards, "guards add nothing")
	require.Equal(t, byContext+5, total, "a total timeout, and context.WithTimeout")
	require.Equal(t, total, attempt, "an attempt timeout, and a total one")
	require.Equal(t, total+1, both, "both timeouts, and one")
	require.LessOrEqual(t, total, byClient+2, "a timeout, and Client.Timeout")
}

// A retry costs what has to be kept of the response that gives way, and of its reading: parked, its offer and the StatusError; the
// reader, its channel, its buffer, and the function that runs. It costs no timer where the whole response is here already.
func TestAllocsOfARetry(t *testing.T) {
	runs, base := 0, memory{text1k}
	busy := tripper(func(r *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(r)
		if runs++; runs%3 != 0 {
			resp.StatusCode = 503
		}
		return resp, err
	})
	tr := httpx.NewTransport(pipeline.For("x").Retry(pause(0)).MustBuild(), busy)
	require.Equal(t, 2*7.0, allocs(t, tr, 0)-3*allocs(t, base, 0), "two retries")
	require.Zero(t, runs%3)
}

// readWhole is one GET, its body read to the end.
func readWhole(t *testing.T, client *http.Client, url string, given time.Duration) {
	ctx := t.Context()
	if given > 0 {
		with, cancel := context.WithTimeout(ctx, given)
		defer cancel()
		ctx = with
	}
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var buf [2048]byte
	for err == nil {
		_, err = resp.Body.Read(buf[:])
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
