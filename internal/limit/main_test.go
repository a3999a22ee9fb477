package limit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testCause is a limit's cause that knows which limit it is of.
type testCause struct {
	name  string
	limit time.Duration
}

func (c *testCause) Error() string { return fmt.Sprintf("%s: %v", c.name, c.limit) }

func newTestCause(name string, limit time.Duration) error { return &testCause{name, limit} }

var errGone = errors.New("the caller went away")

// counting is a fake clock that knows how many of its timers are pending.
type counting struct {
	*clockwork.FakeClock
	pending atomic.Int64
	made    atomic.Int64
}

func (c *counting) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	c.pending.Add(1)
	c.made.Add(1)
	t := &countedTimer{clock: c}
	t.Timer = c.FakeClock.AfterFunc(d, func() {
		t.end()
		f()
	})
	return t
}

type countedTimer struct {
	clockwork.Timer
	clock *counting
	ended atomic.Bool
}

func (t *countedTimer) end() {
	if t.ended.CompareAndSwap(false, true) {
		t.clock.pending.Add(-1)
	}
}

func (t *countedTimer) Stop() bool {
	stopped := t.Timer.Stop()
	if stopped {
		t.end()
	}
	return stopped
}

// testbed is a clock under a test's control, in a synctest bubble; the bubble's own time and an injected clock go together.
type testbed struct {
	clk  clock.Clock
	fake *counting // nil = real time
}

// eachClock runs the test in a bubble of its own on real time and on an injected clock.
func eachClock(t *testing.T, test func(t *testing.T, b *testbed)) {
	t.Run("real", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, &testbed{clk: clock.Of(nil)}) })
	})
	t.Run("injected", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fake := &counting{FakeClock: clockwork.NewFakeClockAt(time.Now())}
			test(t, &testbed{clk: clock.Of(fake), fake: fake})
		})
	})
}

// advance lets d pass, in steps of a millisecond so that the two clocks' timers fire in order.
func (b *testbed) advance(d time.Duration) {
	for ; d > 0; d -= time.Millisecond {
		step := min(d, time.Millisecond)
		<-time.After(step)
		if b.fake != nil {
			b.fake.Advance(step)
		}
		synctest.Wait()
	}
	synctest.Wait() // 0 is: let everybody run
}

// after is the instant in d.
func (b *testbed) after(d time.Duration) int64 { return b.clk.Now() + int64(d) }

func (b *testbed) new(parent context.Context, d time.Duration) *Ctx {
	return New(parent, b.clk, b.after(d), &Spec{"test", d, newTestCause})
}

func closed(c context.Context) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}
