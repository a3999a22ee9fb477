package limit

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Who ended it, for every order of the limit (at 10 ms), the caller's deadline and the caller's cancelling. 0 = never.
func TestWhoFired(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name     string
		deadline time.Duration // the caller's
		cancel   time.Duration // when the caller goes away
		end      time.Duration // when the callback returns
		touched  bool          // the callback asked for Done at once
		fired    bool
		parent   error
	}{
		{name: "nothing yet", end: 9 * ms},
		{name: "nothing yet, touched", end: 9 * ms, touched: true},
		{name: "limit", end: 10 * ms, fired: true},
		{name: "limit, touched", end: 10 * ms, touched: true, fired: true},
		{name: "limit, long ago", end: 50 * ms, fired: true},
		{name: "limit, long ago, touched", end: 50 * ms, touched: true, fired: true},

		{name: "caller's deadline earlier", deadline: 9 * ms, end: 9 * ms, parent: context.DeadlineExceeded},
		{name: "caller's deadline earlier, touched", deadline: 9 * ms, end: 9 * ms, touched: true, parent: context.DeadlineExceeded},
		{name: "caller's deadline earlier, both over", deadline: 9 * ms, end: 20 * ms, parent: context.DeadlineExceeded},
		{name: "caller's deadline earlier, both over, touched", deadline: 9 * ms, end: 20 * ms, touched: true, parent: context.DeadlineExceeded},
		{name: "equal belongs to the caller", deadline: 10 * ms, end: 10 * ms, parent: context.DeadlineExceeded},
		{name: "equal belongs to the caller, touched", deadline: 10 * ms, end: 10 * ms, touched: true, parent: context.DeadlineExceeded},
		{name: "equal, not yet", deadline: 10 * ms, end: 9 * ms},
		{name: "equal, not yet, touched", deadline: 10 * ms, end: 9 * ms, touched: true},
		{name: "caller's deadline later", deadline: 11 * ms, end: 10 * ms, fired: true},
		{name: "caller's deadline later, touched", deadline: 11 * ms, end: 10 * ms, touched: true, fired: true},
		{name: "caller's deadline later, both over", deadline: 11 * ms, end: 20 * ms, fired: true},
		{name: "caller's deadline later, both over, touched", deadline: 11 * ms, end: 20 * ms, touched: true, fired: true},

		{name: "caller cancelled", cancel: 5 * ms, end: 6 * ms, parent: context.Canceled},
		{name: "caller cancelled, touched", cancel: 5 * ms, end: 6 * ms, touched: true, parent: context.Canceled},
		{name: "caller cancelled before, touched", cancel: 9 * ms, end: 20 * ms, touched: true, parent: context.Canceled},
		{name: "caller cancelled before, unseen: a cancelling leaves no instant, the limit does", cancel: 9 * ms, end: 20 * ms, fired: true},
		{name: "caller cancelled after", cancel: 11 * ms, end: 20 * ms, fired: true},
		{name: "caller cancelled after, touched", cancel: 11 * ms, end: 20 * ms, touched: true, fired: true},
		{name: "caller cancelled before its own earlier deadline", cancel: 3 * ms, deadline: 5 * ms, end: 4 * ms, touched: true, parent: context.Canceled},
		{name: "caller cancelled after its own earlier deadline", cancel: 7 * ms, deadline: 5 * ms, end: 8 * ms, touched: true, parent: context.DeadlineExceeded},
	} {
		t.Run(row.name, func(t *testing.T) {
			eachClock(t, func(t *testing.T, b *testbed) {
				caller, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				if row.deadline > 0 {
					with, stop := context.WithTimeout(caller, row.deadline)
					defer stop()
					caller = with
				}
				c := b.new(caller, 10*ms)
				defer c.End()
				if row.touched {
					c.Done()
				}
				for now := ms; now <= row.end; now += ms {
					b.advance(ms)
					if now == row.cancel {
						cancel(errGone)
						b.advance(0)
					}
				}
				for range 2 { // the answer stays
					fired, parent := c.Ended(b.clk.Now())
					require.Equal(t, row.fired, fired)
					require.Equal(t, row.parent, parent)
				}
				c.End()
				if row.fired || row.parent != nil {
					cancel(errGone)
					fired, parent := c.Ended(b.clk.Now() + int64(time.Hour))
					require.Equal(t, row.fired, fired, "also after End and a change of the parent")
					require.Equal(t, row.parent, parent)
				}
			})
		})
	}
}

// Once armed the parent is not asked: the callback returned before the caller went away, and its context lived.
func TestArmedDoesNotAskTheParentAfterwards(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		caller, cancel := context.WithCancel(context.Background())
		c := b.new(caller, time.Second)
		c.Done()
		end := b.clk.Now()
		c.End()
		cancel()
		fired, parent := c.Ended(end)
		require.False(t, fired)
		require.NoError(t, parent)
	})
}

// A timer may be late: nothing is on record, and the instants decide.
func TestLateTimer(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		for _, row := range []struct {
			deadline time.Duration // the caller's; 0 = none
			fired    bool
			parent   error
		}{{0, true, nil}, {2 * time.Hour, true, nil}, {time.Hour, false, context.DeadlineExceeded}, {time.Minute, false, context.DeadlineExceeded}} {
			caller, cancel := context.WithCancel(context.Background())
			if row.deadline > 0 {
				caller, cancel = context.WithTimeout(caller, row.deadline)
			}
			c := b.new(caller, time.Hour)
			c.Done()
			fired, parent := c.Ended(c.At() - 1)
			if row.deadline != time.Minute {
				require.False(t, fired)
				require.NoError(t, parent)
			}
			fired, parent = c.Ended(c.At())
			require.NoError(t, c.Err(), "no timer has run")
			require.Equal(t, row.fired, fired)
			require.Equal(t, row.parent, parent)
			c.End()
			cancel()
		}
	})
}

// What Err told the callback is on record: it must not be judged by instants afterwards.
func TestErrIsOnRecord(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		caller, cancel := context.WithCancel(context.Background())
		c := b.new(caller, 10*time.Millisecond)
		defer c.End()
		cancel()
		require.Equal(t, context.Canceled, c.Err())
		b.advance(20 * time.Millisecond)
		fired, parent := c.Ended(b.clk.Now())
		require.False(t, fired, "the callback knew that the caller was gone")
		require.Equal(t, context.Canceled, parent)
	})
}

// The limit came first and nobody watched; asked after the caller's own later deadline, it is still the limit's.
func TestUnseenLimitBeforeTheCallersDeadline(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		caller, cancel := context.WithTimeout(context.Background(), 15*time.Millisecond)
		defer cancel()
		c := b.new(caller, 10*time.Millisecond)
		defer c.End()
		b.advance(20 * time.Millisecond)
		require.Equal(t, context.DeadlineExceeded, c.Err())
		require.IsType(t, (*testCause)(nil), context.Cause(c))
		fired, _ := c.Ended(b.clk.Now())
		require.True(t, fired)
	})
}

// A parent that hides its deadline, and one with an error of its own, are what they say.
func TestForeignParents(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		hidden := foreign{Context: context.Background(), err: context.DeadlineExceeded}
		c := b.new(hidden, time.Millisecond)
		b.advance(2 * time.Millisecond)
		require.Equal(t, context.DeadlineExceeded, c.Err())
		fired, parent := c.Ended(b.clk.Now())
		require.False(t, fired)
		require.Equal(t, context.DeadlineExceeded, parent)
		c.End()

		strange := foreign{Context: context.Background(), err: errGone}
		c = b.new(strange, time.Hour)
		fired, parent = c.Ended(b.clk.Now())
		require.False(t, fired)
		require.Equal(t, context.Canceled, parent, "whatever is no deadline counts as cancelled")
		require.Equal(t, errGone, c.Err())
		c.End()
	})
}

// foreign is a context of somebody's own that has ended.
type foreign struct {
	context.Context
	err error
}

var foreignDone = make(chan struct{})

func init() { close(foreignDone) }

func (f foreign) Done() <-chan struct{} { return foreignDone }
func (f foreign) Err() error            { return f.err }

// Nested limits of the same name and length are told apart by identity.
func TestIdentityNotEquality(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		outer := b.new(context.Background(), 10*time.Millisecond)
		b.advance(time.Millisecond)
		inner := b.new(outer, 10*time.Millisecond) // would fire at 11
		inner.Done()
		b.advance(20 * time.Millisecond)
		require.Equal(t, context.Cause(outer), context.Cause(inner))
		fired, parent := inner.Ended(b.clk.Now())
		require.False(t, fired)
		require.Equal(t, context.DeadlineExceeded, parent)
		inner.End()
		fired, _ = outer.Ended(b.clk.Now())
		require.True(t, fired)
		outer.End()
	})
}

// Equal instants of two nested limits belong to the outer one, with anything in between, touched or not.
func TestEqualInstantsOfNestedLimits(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		type k struct{}
		for _, touch := range []bool{false, true} {
			outer := b.new(context.Background(), 5*time.Millisecond)
			direct := b.new(outer, 5*time.Millisecond)
			below := b.new(context.WithValue(outer, k{}, 1), 5*time.Millisecond)
			if touch {
				below.Done()
				direct.Done()
			}
			b.advance(5 * time.Millisecond)
			for _, inner := range []*Ctx{direct, below} {
				fired, parent := inner.Ended(b.clk.Now())
				require.False(t, fired)
				require.Equal(t, context.DeadlineExceeded, parent)
				inner.End()
			}
			fired, _ := outer.Ended(b.clk.Now())
			require.True(t, fired)
			outer.End()
		}
	})
}

// A caller that cancels between the callback's return and Goexit's unwinding changes nothing: End is what defers run.
func TestEndDuringUnwinding(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			eachClock(t, func(t *testing.T, b *testbed) {
				c := b.new(context.Background(), time.Second)
				child, cancel := context.WithCancel(c)
				defer cancel()
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					defer func() { _ = recover() }()
					defer c.End()
					leave()
				}()
				<-gone
				require.Equal(t, context.Canceled, c.Err())
				require.Equal(t, context.Canceled, child.Err())
				if b.fake != nil {
					require.Zero(t, b.fake.pending.Load())
				}
			})
		})
	}
}

// over is a context that has ended and closes nothing.
type over struct {
	context.Context
	err error
}

func (c over) Err() error { return c.err }

// Whoever waits under a limit is told at once that its parent is over, also where that has no Done.
func TestParentThatIsOverWithoutDone(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		c := b.new(over{context.Background(), errGone}, time.Hour)
		defer c.End()
		select {
		case <-c.Done():
		case <-time.After(time.Minute):
			t.Fatal("waits for the limit")
		}
		require.Error(t, c.Err())
		fired, _ := c.Ended(b.clk.Now())
		require.False(t, fired)
	})
}
