package httpx_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// 25 calls with three retried 503s each, on one connection.
func TestDiscardedResponsesKeepTheConnection(t *testing.T) {
	for name, h2 := range protocols {
		for _, timeouts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var s *site
				s = serve(t, h2, func(w http.ResponseWriter, _ *http.Request) {
					if s.requests.Load()%4 != 0 {
						w.WriteHeader(503)
						_, _ = io.WriteString(w, strings.Repeat("x", 20_000))
						return
					}
					_, _ = io.WriteString(w, "ok")
				})
				b := pipeline.For("x").Retry(soon(func(c *retry.Config) { c.MaxAttempts = 4 }))
				if timeouts {
					b = b.Timeout(limit("t", time.Minute)).AttemptTimeout(limit("a", 30*time.Second))
				}
				client := s.client(b.MustBuild())
				for range 25 {
					resp, err := client.Get(s.URL)
					require.NoError(t, err)
					require.Equal(t, "ok", text(t, resp))
				}
				require.EqualValues(t, 100, s.requests.Load())
				require.EqualValues(t, 1, s.connections.Load())
			})
		}
	}
}

// The time that an attempt had may be over long before its retry: the connection is used again all the same.
func TestConnectionOutlivesTheAttemptDuringABackoff(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			var s *site
			s = serve(t, h2, func(w http.ResponseWriter, _ *http.Request) {
				if s.requests.Load() < 3 {
					w.WriteHeader(503)
				}
				_, _ = io.WriteString(w, "text")
			})
			p := pipeline.For("x").AttemptTimeout(limit("a", 300*time.Millisecond)).Retry(retry.MustNew(retry.Config{
				Backoff: retry.Constant(400 * time.Millisecond), Jitter: retry.None,
			})).MustBuild()
			resp, err := s.client(p).Get(s.URL)
			require.NoError(t, err)
			require.Equal(t, "text", text(t, resp))
			require.EqualValues(t, 3, s.requests.Load())
			require.EqualValues(t, 1, s.connections.Load())
		})
	}
}

// C33 (a), (b): each failed response is closed before the next request; the last one is the caller's, unread.
func TestResponsesAreClosedBeforeTheNextRequest(t *testing.T) {
	for name, last := range map[string]int{"then 200": 200, "out of attempts": 503} {
		t.Run(name, func(t *testing.T) {
			bodies := []*watched{body("b1"), body("b2"), body("b3")}
			inner := &answers{list: []func(*http.Request) (*http.Response, error){status(503, bodies[0]), status(503, bodies[1]), status(last, bodies[2])}}
			var closes []int64
			base := tripper(func(r *http.Request) (*http.Response, error) {
				closes = append(closes, bodies[0].closes.Load()+bodies[1].closes.Load())
				return inner.RoundTrip(r)
			})
			resp, err := httpx.NewTransport(retrying(), base).RoundTrip(request(t, "GET", "http://host", nil))
			require.NoError(t, err)
			require.Equal(t, last, resp.StatusCode)
			require.Equal(t, []int64{0, 1, 2}, closes)
			require.EqualValues(t, 2, bodies[0].bytes.Load(), "drained")
			require.Zero(t, bodies[2].reads.Load())
			require.Zero(t, bodies[2].closes.Load())
			require.Equal(t, "b3", text(t, resp))
		})
	}
}

// C33 (c): an endless body does not hold the retry up, and is not read beyond the limit.
func TestDrainingIsBounded(t *testing.T) {
	t.Run("in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			go func() {
				for {
					if _, err := w.Write([]byte{'x'}); err != nil {
						return
					}
					<-time.After(time.Second)
				}
			}()
			first := &watched{Reader: r}
			base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first), status(200, nil)}}
			began := time.Now()
			resp, err := httpx.NewTransport(retrying(), base).RoundTrip(request(t, "GET", "http://host", nil))
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, 500*time.Millisecond, time.Since(began), "from the moment at which the retry was certain")
			<-time.After(2 * time.Second) // the read that was under way, and the writer's last pause
			require.EqualValues(t, 1, first.closes.Load())
		})
	})
	t.Run("in bytes", func(t *testing.T) {
		first := &watched{Reader: endless{}}
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first), status(200, nil)}}
		_, err := httpx.NewTransport(retrying(), base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		require.EqualValues(t, 64<<10, first.bytes.Load())
		require.EqualValues(t, 1, first.closes.Load())
	})
	t.Run("of the next attempt's time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe() // nothing is ever written
			defer w.Close()
			base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, &watched{Reader: r}), status(200, nil)}}
			began := time.Now()
			p := pipeline.For("x").Retry(soon()).AttemptTimeout(limit("a", 400*time.Millisecond)).MustBuild()
			resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, 101*time.Millisecond, time.Since(began))
		})
	})
	t.Run("known to be too much", func(t *testing.T) {
		first := body("x")
		base := &answers{list: []func(*http.Request) (*http.Response, error){
			func(r *http.Request) (*http.Response, error) {
				resp, err := status(503, first)(r)
				resp.ContentLength = 64<<10 + 1
				return resp, err
			}, status(200, nil),
		}}
		_, err := httpx.NewTransport(retrying(), base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		require.Zero(t, first.reads.Load())
		require.EqualValues(t, 1, first.closes.Load())
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// However the loop stops, as long as a response is there and the call's time is not over: the response, undrained.
func TestLastResponseWhereverTheLoopStops(t *testing.T) {
	used := budget.MustNewTokens(budget.TokenConfig{Capacity: 1})
	_, _ = used.Reserve()
	for name, row := range map[string]struct {
		build func(b pipeline.Builder) pipeline.Builder
		given time.Duration
		ahead bool // it may have been read: its retry was certain, but for a guard
	}{
		"out of attempts": {build: func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(soon(func(c *retry.Config) { c.MaxAttempts = 1 }))
		}},
		"ReturnLast": {build: func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(soon(func(c *retry.Config) { c.MaxAttempts, c.ReturnLast = 1, true }))
		}},
		"no retry": {build: func(b pipeline.Builder) pipeline.Builder { return b }},
		"retry budget": {build: func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(soon(func(c *retry.Config) { c.NoBudget, c.Budget = false, used }))
		}},
		"not retried by RetryIf": {build: func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(soon(func(c *retry.Config) { c.RetryIf = func(error) bool { return false } }))
		}},
		"MaxElapsed": {build: func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(soon(func(c *retry.Config) { c.MaxElapsed = time.Nanosecond }))
		}},
		"own delay past the deadline": {given: time.Minute, build: func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(soon(func(c *retry.Config) { c.Backoff, c.MaxDelay = retry.Constant(time.Hour), time.Hour }))
		}},
		"breaker opened by it, peeked before the backoff": {build: func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(soon(func(c *retry.Config) { c.Backoff = retry.Constant(10 * time.Second) })).
				Breaker(breaker.MustNew(breaker.Config{Consecutive: 1}))
		}},
		"bulkhead full after the backoff": {ahead: true, build: func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(soon()).With(&rule{acquire: func(n int) error {
				if n > 1 {
					return &bulkhead.FullError{Max: 1}
				}
				return nil
			}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			first := body("busy")
			base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
			ctx := t.Context()
			if row.given > 0 {
				with, cancel := context.WithTimeout(ctx, row.given)
				defer cancel()
				ctx = with
			}
			p := row.build(pipeline.For("x").AttemptTimeout(limit("a", 30*time.Second))).MustBuild()
			began := time.Now()
			resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil).WithContext(ctx))
			require.NoError(t, err)
			require.Less(t, time.Since(began), 5*time.Second)
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, 1, base.runs())
			require.Zero(t, first.closes.Load())
			if !row.ahead {
				require.Zero(t, first.reads.Load(), "undrained")
				require.NoError(t, base.seen[0].Context().Err(), "readable")
			}
			require.Equal(t, "busy", text(t, resp))
			require.EqualValues(t, 1, first.closes.Load())
			eventually(t, func() bool { return base.seen[0].Context().Err() != nil }, "over after EOF")
		})
	}
}

// A response that was read ahead during a backoff is whole, though its attempt's time is over; one that could not be read
// in time is an error that carries the status.
func TestRefusedAfterALongBackoff(t *testing.T) {
	for name, hung := range map[string]bool{"read ahead": false, "unreadable": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := body(strings.Repeat("b", 5000))
				r, w := io.Pipe()
				defer w.Close()
				if hung {
					first = &watched{Reader: r}
				}
				base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
				full := &bulkhead.FullError{Max: 1}
				p := pipeline.For("x").AttemptTimeout(limit("a", time.Second)).
					Retry(retry.MustNew(retry.Config{Backoff: retry.Constant(10 * time.Second), Jitter: retry.None})).
					With(&rule{acquire: func(n int) error {
						if n > 1 {
							return full
						}
						return nil
					}}).MustBuild()
				resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
				if hung {
					require.Nil(t, resp)
					require.ErrorIs(t, err, bulkhead.ErrFull)
					e, ok := errors.AsType[*httpx.StatusError](err)
					require.True(t, ok)
					require.Equal(t, 503, e.Code)
					require.NoError(t, w.Close())
					synctest.Wait()
					require.EqualValues(t, 1, first.closes.Load())
					return
				}
				require.NoError(t, err)
				require.Len(t, text(t, resp), 5000)
				require.EqualValues(t, 1, first.closes.Load())
			})
		})
	}
}

// Whoever takes a response that is just being read ahead gets every byte in order.
func TestTakenWhileReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := strings.Repeat("0123456789", 100)
		r, w := io.Pipe()
		go func() {
			for i := range 10 {
				_, _ = w.Write([]byte(want[i*100 : i*100+100]))
				<-time.After(10 * time.Millisecond)
			}
			_ = w.Close()
		}()
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, &watched{Reader: r})}}
		p := pipeline.For("x").Retry(retry.MustNew(retry.Config{Backoff: retry.Constant(55 * time.Millisecond), Jitter: retry.None})).
			With(&rule{acquire: func(n int) error {
				if n > 1 {
					return closed{}
				}
				return nil
			}}).MustBuild()
		resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		require.Equal(t, want, text(t, resp))
	})
}

// The end of the call's time in a backoff is an error, and the response is closed.
func TestContextEndsDuringTheBackoff(t *testing.T) {
	gone := errors.New("shutdown")
	for name, returnLast := range map[string]bool{"": false, "ReturnLast": true} {
		for _, total := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first := body("busy")
					base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
					b := pipeline.For("x").Retry(retry.MustNew(retry.Config{
						Backoff: retry.Constant(10 * time.Second), Jitter: retry.None, ReturnLast: returnLast,
					}))
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if total {
						// not retry_delay_exceeds_deadline: the token that the retry waits for comes too late
						b = pipeline.For("x").Timeout(limit("t", 3*time.Second)).Retry(soon()).With(waits{5 * time.Second})
					} else {
						time.AfterFunc(3*time.Second, func() { cancel(gone) })
					}
					began := time.Now()
					resp, err := httpx.NewTransport(b.MustBuild(), base).RoundTrip(request(t, "GET", "http://host", nil).WithContext(ctx))
					require.Nil(t, resp)
					require.Equal(t, 3*time.Second, time.Since(began))
					if total {
						require.ErrorIs(t, err, timeout.ErrTimeout)
					} else {
						require.ErrorIs(t, err, context.Canceled)
						require.ErrorIs(t, err, gone)
					}
					e, ok := errors.AsType[*httpx.StatusError](err)
					require.True(t, ok)
					require.Equal(t, 503, e.Code)
					require.EqualValues(t, 1, first.closes.Load())
				})
			})
		}
	}
}

// waits is a guard that lets the first in and makes the others wait.
type waits struct{ d time.Duration }

func (w waits) Acquire(ctx context.Context) (leaf.Permit, error) {
	if deadline, _ := ctx.Deadline(); time.Until(deadline) > 2999*time.Millisecond {
		return leaf.Permit{}, nil
	}
	return leaf.Permit{}, budget.Sleep(ctx, nil, w.d)
}

// A base against the contract: nothing crashes, nothing leaks.
func TestBaseAgainstTheContract(t *testing.T) {
	b := body("x")
	both := tripper(func(r *http.Request) (*http.Response, error) {
		resp, _ := status(200, b)(r)
		return resp, errDown
	})
	_, err := httpx.NewTransport(pipeline.For("x").MustBuild(), both).RoundTrip(request(t, "GET", "http://host", nil))
	require.Equal(t, errDown, err)
	require.EqualValues(t, 1, b.closes.Load())

	neither := tripper(func(*http.Request) (*http.Response, error) { return nil, nil })
	_, err = httpx.NewTransport(pipeline.For("x").MustBuild(), neither).RoundTrip(request(t, "GET", "http://host", nil))
	require.EqualError(t, err, "httpx: the base RoundTripper returned neither a response nor an error")

	for _, code := range []int{200, 503} {
		bodiless := tripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: code}, nil })
		resp, err := httpx.NewTransport(retrying(), bodiless).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		require.Nil(t, resp.Body)
	}
}
