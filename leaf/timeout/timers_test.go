package timeout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/timeout"
)

// counting is real time (a bubble's) that counts its timers; whatever a limit has no business with panics.
type counting struct {
	clockwork.Clock
	started, live atomic.Int64
}

func (c *counting) Now() time.Time                  { return time.Now() }
func (c *counting) Since(t time.Time) time.Duration { return time.Since(t) }
func (c *counting) Until(t time.Time) time.Duration { return time.Until(t) }
func (c *counting) NewTimer(d time.Duration) clockwork.Timer {
	fired := make(chan time.Time, 1)
	t := c.AfterFunc(d, func() { fired <- time.Now() }).(*countedTimer)
	t.fired = fired
	return t
}

func (c *counting) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	c.started.Add(1)
	c.live.Add(1)
	return &countedTimer{Timer: time.AfterFunc(d, func() { c.live.Add(-1); f() }), clock: c}
}

type countedTimer struct {
	*time.Timer
	clock *counting
	fired chan time.Time
}

func (t *countedTimer) Chan() <-chan time.Time { return t.fired }
func (t *countedTimer) Stop() bool {
	stopped := t.Timer.Stop()
	if stopped {
		t.clock.live.Add(-1)
	}
	return stopped
}

// A call that ends before its limit leaves neither its timer nor a goroutine behind, however it ends; one that nobody waited in
// started none.
func TestNoTimerOutlivesItsCall(t *testing.T) {
	for name, row := range map[string]struct {
		fn      func(ctx context.Context) (int, error)
		cancel  bool // the caller goes away
		limit   time.Duration
		started int64 // timers per call
	}{
		"caller goes away":         {fn: obey, cancel: true, limit: time.Hour, started: 1},
		"returns in time":          {fn: func(ctx context.Context) (int, error) { _ = ctx.Done(); return 1, nil }, limit: time.Hour, started: 1},
		"children wait":            {fn: withChildren, cancel: true, limit: time.Hour, started: 1},
		"the limit fires":          {fn: obey, limit: ms, started: 1},
		"nobody waits":             {fn: func(ctx context.Context) (int, error) { return 1, ctx.Err() }, limit: time.Hour},
		"nobody waits, and it ran": {fn: fail(2 * ms), limit: ms},
		"panics": {fn: func(ctx context.Context) (int, error) {
			_ = ctx.Done()
			panic("fn")
		}, limit: time.Hour, started: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the bubble ends with its last goroutine, or fails
				c := &counting{}
				x := timeout.MustNew(timeout.Config{Name: "x", Limit: row.limit, Clock: c})
				for i := range int64(100) {
					ctx, cancel := context.WithCancel(t.Context())
					if row.cancel {
						time.AfterFunc(ms, cancel)
					}
					func() {
						defer func() { _ = recover() }()
						_, _ = timeout.Do(ctx, x, row.fn)
					}()
					require.Zero(t, c.live.Load(), "none stays when the call has returned")
					require.Equal(t, (i+1)*row.started, c.started.Load())
					cancel()
				}
			})
		})
	}
}

func withChildren(ctx context.Context) (int, error) {
	a, cancelA := context.WithCancel(ctx)
	defer cancelA()
	b, cancelB := context.WithTimeout(a, time.Minute) // a timer of its own, not of the clock's
	defer cancelB()
	<-b.Done()
	return 0, errApp
}
