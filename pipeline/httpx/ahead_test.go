package httpx_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// pause is a retry after d.
func pause(d time.Duration, change ...func(*retry.Config)) *retry.Retry {
	return soon(append([]func(*retry.Config){func(c *retry.Config) { c.Backoff = retry.Constant(d) }}, change...)...)
}

// fullAfter is a guard that admits the first attempt, and refuses the others after a wait.
func fullAfter(wait time.Duration) *rule {
	return &rule{acquire: func(n int) error {
		if n == 1 {
			return nil
		}
		<-time.After(wait)
		return &bulkhead.FullError{Max: 1}
	}}
}

// No retry follows, however long the guards take to be told (a store's round trip): not a byte is read.
func TestUntouchedWithoutARetry(t *testing.T) {
	slow := settles(func() { <-time.After(200 * time.Millisecond) })
	for name, build := range map[string]func(b pipeline.Builder) pipeline.Builder{
		"no retry": func(b pipeline.Builder) pipeline.Builder { return b },
		"out of attempts": func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(pause(time.Second, func(c *retry.Config) { c.MaxAttempts = 1 }))
		},
		"out of budget": func(b pipeline.Builder) pipeline.Builder {
			used := budget.MustNewTokens(budget.TokenConfig{Capacity: 1})
			_, _ = used.Reserve()
			return b.Retry(pause(time.Second, func(c *retry.Config) { c.NoBudget, c.Budget = false, used }))
		},
		"not wanted, after a while": func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(pause(time.Second, func(c *retry.Config) { c.RetryIf = func(error) bool { slow(); return false } }))
		},
		"a slow observer": func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(pause(time.Hour, func(c *retry.Config) { c.MaxDelay = time.Hour })).Observe(func(context.Context, pipeline.Event) { slow() })
		},
		"peeked, breaker": func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(pause(time.Second)).Breaker(breaker.MustNew(breaker.Config{Consecutive: 1}))
		},
		"peeked, cooldown": func(b pipeline.Builder) pipeline.Builder {
			cool := cooldown.MustNew(cooldown.Config{})
			return b.Retry(pause(time.Second)).Cooldown(cool).With(settles(func() { cool.Hint(t.Context(), 30*time.Second) }))
		},
		"past the deadline": func(b pipeline.Builder) pipeline.Builder {
			return b.Retry(pause(time.Hour, func(c *retry.Config) { c.MaxDelay = time.Hour }))
		},
	} {
		for _, store := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := build(pipeline.For("x")).Timeout(limit("t", 50*time.Second)).AttemptTimeout(limit("a", 40*time.Second))
				if store {
					b = b.With(slow)
				}
				first := body("busy")
				base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
				resp, err := httpx.NewTransport(b.MustBuild(), base).RoundTrip(request(t, "GET", "http://host", nil))
				require.NoError(t, err, name)
				<-time.After(time.Second)
				require.Equal(t, 1, base.runs(), name)
				require.Zero(t, first.reads.Load(), name)
				require.Equal(t, "busy", text(t, resp), name)
			})
		}
	}
}

// A retry is certain, but for a guard: its response is read ahead at once, so that the end of its attempt's time, however near, does
// not cut it. Refused after all, it is the caller's, whole.
func TestReadAheadFromTheMomentTheRetryIsCertain(t *testing.T) {
	for name, row := range map[string]struct{ delay, wait, attempt time.Duration }{
		"no delay, a guard that waits": {0, 10 * time.Second, time.Second},
		"a delay":                      {10 * time.Second, 0, time.Second},
		"1 ms left for the attempt":    {10 * time.Second, time.Second, time.Millisecond},
		"no delay, no wait":            {0, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := body(strings.Repeat("b", 5000))
				base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
				p := pipeline.For("x").Retry(pause(row.delay)).With(fullAfter(row.wait)).AttemptTimeout(limit("a", row.attempt)).MustBuild()
				resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
				require.NoError(t, err)
				require.Equal(t, 503, resp.StatusCode)
				require.Zero(t, first.closes.Load())
				require.Len(t, text(t, resp), 5000)
				require.EqualValues(t, 1, first.closes.Load())
				require.Error(t, base.seen[0].Context().Err(), "nothing holds it any more")
			})
		})
	}
}

// What takes its time to arrive is read on by the caller, where it left off, as long as the attempt's time lasts.
func TestRefusedAtOnceIsReadOnByTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() {
			for range 10 {
				<-time.After(10 * time.Millisecond)
				_, _ = io.WriteString(w, "0123456789")
			}
			_ = w.Close()
		}()
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, &watched{Reader: r})}}
		p := pipeline.For("x").Retry(pause(0)).With(fullAfter(0)).AttemptTimeout(limit("a", time.Second)).MustBuild()
		resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		require.NoError(t, base.seen[0].Context().Err())
		require.Equal(t, strings.Repeat("0123456789", 10), text(t, resp))
		require.Error(t, base.seen[0].Context().Err())
	})
}

// Over a real connection: it is used again, though the attempt's time was over while a guard made the retry wait.
func TestConnectionOutlivesTheAttemptUnderAGuardsWait(t *testing.T) {
	for name, h2 := range protocols {
		t.Run(name, func(t *testing.T) {
			var s *site
			s = serve(t, h2, func(w http.ResponseWriter, _ *http.Request) {
				if s.requests.Load() < 3 {
					w.WriteHeader(503)
				}
				_, _ = io.WriteString(w, "text")
			})
			p := pipeline.For("x").AttemptTimeout(limit("a", 400*time.Millisecond)).Retry(pause(0)).
				With(&rule{acquire: func(n int) error {
					if n > 1 {
						<-time.After(500 * time.Millisecond)
					}
					return nil
				}}).MustBuild()
			resp, err := s.client(p).Get(s.URL)
			require.NoError(t, err)
			require.Equal(t, "text", text(t, resp))
			require.EqualValues(t, 3, s.requests.Load())
			require.EqualValues(t, 1, s.connections.Load())
		})
	}
}

// A failure that was kept comes out of another pipeline, which retries it, while the caller has not read the response yet: nobody
// takes a byte away.
func TestAFailureThatIsKeptTouchesNoBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept error
		first := body("busy")
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
		p := pipeline.For("x").Retry(soon(func(c *retry.Config) {
			c.StopIf = func(err error) bool { kept = err; return true }
		})).MustBuild()
		resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		again := pipeline.For("y").Retry(pause(time.Second)).MustBuild()
		require.ErrorIs(t, again.Run(t.Context(), func(context.Context) error { return kept }), kept)
		require.Zero(t, first.reads.Load())
		require.Equal(t, "busy", text(t, resp))
	})
}

// The same from another goroutine, in the instant at which the response is taken: every byte, once.
func TestAFailureThatIsToldWhileItsResponseIsTaken(t *testing.T) {
	for range 50 {
		var others sync.WaitGroup
		p := pipeline.For("x").Retry(soon(func(c *retry.Config) {
			c.StopIf = func(err error) bool {
				others.Go(func() {
					again := pipeline.For("y").Retry(pause(0)).MustBuild()
					_ = again.Run(context.Background(), func(context.Context) error { return err })
				})
				return true
			}
		})).AttemptTimeout(limit("a", time.Minute)).MustBuild()
		base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, body("busy"))}}
		resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
		require.NoError(t, err)
		require.Equal(t, "busy", text(t, resp))
		others.Wait()
	}
}

// A call that dies between the decision and the next attempt leaves no response open, and no read under way.
func TestReadAheadIsEndedByAPanic(t *testing.T) {
	for name, die := range map[string]func(){"panic": func() { panic("guard") }, "goexit": runtimeGoexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe() // nothing is ever written
				defer w.Close()
				first := &watched{Reader: r}
				base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first)}}
				tokens := budget.MustNewTokens(budget.TokenConfig{Capacity: 1, Hold: time.Hour})
				p := pipeline.For("x").Retry(pause(time.Second, func(c *retry.Config) { c.NoBudget, c.Budget = false, tokens })).
					With(&rule{acquire: func(n int) error {
						if n > 1 {
							die()
						}
						return nil
					}}).AttemptTimeout(limit("a", time.Minute)).MustBuild()
				var done sync.WaitGroup
				done.Go(func() {
					defer func() { _ = recover() }()
					_, _ = httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
				})
				done.Wait()
				require.Equal(t, 1, tokens.Balance())
				require.Error(t, base.seen[0].Context().Err())
				require.NoError(t, w.Close()) // this body ignores its context
				synctest.Wait()
				require.EqualValues(t, 1, first.closes.Load())
			})
		})
	}
}

// The body is read on another goroutine: what panics there, or ends it, is an error of that body, and no crash.
func TestABodyThatPanicsWhileReadAhead(t *testing.T) {
	for name, die := range map[string]func(){"panic": func() { panic("body") }, "goexit": runtimeGoexit} {
		for _, delay := range []time.Duration{0, time.Second} { // nobody waits for the body yet, or somebody does
			t.Run(name+" "+delay.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first := &watched{Reader: readFunc(func([]byte) (int, error) { die(); return 0, errors.New("never") })}
					base := &answers{list: []func(*http.Request) (*http.Response, error){status(503, first), status(200, body("ok"))}}
					resp, err := httpx.NewTransport(pipeline.For("x").Retry(pause(delay)).MustBuild(), base).RoundTrip(request(t, "GET", "http://host", nil))
					require.NoError(t, err)
					require.Equal(t, "ok", text(t, resp))
					require.EqualValues(t, 1, first.closes.Load())
				})
			})
		}
	}
}

// What was read ahead is whole, whatever length the base names: it says how much memory is taken, and no more.
func TestReadAheadIsWholeWhateverLengthIsNamed(t *testing.T) {
	for _, size := range []int{1, 511, 512, 513, 5000, 64<<10 - 1} {
		for name, length := range map[string]int{"unknown": -1, "right": size, "none": 0, "too short": size / 2, "too long": size + 1} {
			synctest.Test(t, func(t *testing.T) {
				whole := strings.Repeat("b", size)
				base := &answers{list: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
					resp, err := status(503, body(whole))(r)
					resp.ContentLength = int64(length)
					return resp, err
				}}}
				p := pipeline.For("x").Retry(pause(time.Second)).With(fullAfter(0)).MustBuild()
				resp, err := httpx.NewTransport(p, base).RoundTrip(request(t, "GET", "http://host", nil))
				require.NoError(t, err)
				require.Equal(t, whole, text(t, resp), "%d, %s", size, name)
			})
		}
	}
}
