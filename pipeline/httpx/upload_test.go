package httpx_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// Nothing is buffered: the first byte of an upload arrives before the last is written.
func TestUploadIsNotBuffered(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{})
			s := serve(t, h2, func(w http.ResponseWriter, r *http.Request) {
				first := make([]byte, 1)
				_, _ = io.ReadFull(r.Body, first)
				close(arrived)
				rest, _ := io.ReadAll(r.Body)
				_, _ = w.Write(append(first, rest...))
			})
			out, in := io.Pipe()
			own := &watched{Reader: out}
			go func() {
				_, _ = io.WriteString(in, "a")
				<-arrived
				_, _ = io.WriteString(in, "z")
				_ = in.Close()
			}()
			p := pipeline.For("x").AttemptTimeout(limit("a", 30*time.Second)).Retry(soon()).MustBuild()
			resp, err := s.client(p).Do(request(t, "PUT", s.URL, own))
			require.NoError(t, err)
			require.Equal(t, "az", text(t, resp))
			eventually(t, func() bool { return own.closes.Load() == 1 }, "closed once")
		})
	}
}

// A file at an offset is sent from that offset, and sent again from there.
func TestFileAtAnOffsetIsSentAgainFromThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upload")
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	open := func() (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err == nil {
			_, err = f.Seek(4, io.SeekStart)
		}
		return f, err
	}
	var mu sync.Mutex
	var got []string
	s := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(sent))
		if len(got) < 3 {
			w.WriteHeader(503)
		}
	})
	s.base.DisableKeepAlives = true // net/http would rewind by itself
	f, err := open()
	require.NoError(t, err)
	req := request(t, "PUT", s.URL, f)
	req.ContentLength, req.GetBody = 6, open
	resp, err := s.client(retrying()).Do(req)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, []string{"456789", "456789", "456789"}, got)
	_, err = f.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrClosed)
}

// The client injects what is left of min(caller, total, attempt), and nothing without a deadline.
func TestBudgetHeaderOfTheClient(t *testing.T) {
	for _, row := range []struct {
		caller, total, attempt time.Duration
		want                   string
	}{
		{},
		{caller: 5 * time.Second, want: "5000"},
		{caller: 5 * time.Second, total: 4 * time.Second, attempt: 3 * time.Second, want: "3000"},
		{caller: 2 * time.Second, total: 4 * time.Second, attempt: 3 * time.Second, want: "2000"},
		{caller: 9 * time.Second, total: 1500*time.Millisecond + 1, want: "1500"},
		{attempt: time.Millisecond - 1, want: "0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := pipeline.For("x")
			if row.total > 0 {
				b = b.Timeout(limit("t", row.total))
			}
			if row.attempt > 0 {
				b = b.AttemptTimeout(limit("a", row.attempt))
			}
			ctx := t.Context()
			if row.caller > 0 {
				with, cancel := context.WithTimeout(ctx, row.caller)
				defer cancel()
				ctx = with
			}
			base := &answers{list: []func(*http.Request) (*http.Response, error){status(200, nil)}}
			_, err := httpx.NewTransport(b.MustBuild(), base).RoundTrip(request(t, "GET", "http://host", nil).WithContext(ctx))
			require.NoError(t, err)
			require.Equal(t, row.want, base.seen[0].Header.Get(budget.Header), "%+v", row)
		})
	}
}

// Each attempt tells what is left then.
func TestBudgetHeaderShrinksFromAttemptToAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, nil, "Retry-After", "2"), status(200, nil)}}
		p := pipeline.For("x").Timeout(limit("t", 10*time.Second)).Retry(soon()).MustBuild()
		_, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		first, _ := strconv.Atoi(base.seen[0].Header.Get(budget.Header))
		second, _ := strconv.Atoi(base.seen[1].Header.Get(budget.Header))
		require.Equal(t, []int{10000, 8000}, []int{first, second})
	})
}

// The header is in the time of the pipeline's own clock.
func TestBudgetHeaderOnAnInjectedClock(t *testing.T) {
	clock := clockwork.NewFakeClock()
	p := pipeline.For("x").AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 3 * time.Second, Clock: clock})).MustBuild()
	base := &answers{list: []func(*http.Request) (*http.Response, error){status(200, nil)}}
	_, err := httpx.NewTransport(p, base, httpx.Clock(clock)).RoundTrip(request(t, "GET", "http://host", nil))
	require.NoError(t, err)
	require.Equal(t, "3000", base.seen[0].Header.Get(budget.Header))
}

// There is one value, whatever the caller's request says, which stays as it is. Calls share it while it is the same: a base
// that adds to its own request changes no other one.
func TestBudgetHeaderIsOneValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(200, nil)}}
		adding := tripper(func(r *http.Request) (*http.Response, error) {
			require.Equal(t, []string{"3000"}, r.Header[budget.Header])
			r.Header.Add(budget.Header, "mine")
			return base.RoundTrip(r)
		})
		p := pipeline.For("x").AttemptTimeout(limit("a", 3*time.Second)).MustBuild()
		tr := httpx.NewTransport(p, adding)
		for range 2 {
			req := request(t, "GET", "http://host", nil)
			req.Header[budget.Header] = []string{"1", "99999999999999999999"}
			_, err := tr.RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, []string{"1", "99999999999999999999"}, req.Header[budget.Header])
		}
		for _, r := range base.seen {
			require.Equal(t, []string{"3000", "mine"}, r.Header[budget.Header])
		}
	})
}
