package limit

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/internal/clock"
)

// Until Done is first asked for, a Ctx holds no timer, whatever else it is asked.
func TestNoTimerBeforeDone(t *testing.T) {
	fake := &counting{FakeClock: clockwork.NewFakeClock()}
	clk := clock.Of(fake)
	c := New(context.Background(), clk, clk.Now()+int64(time.Second), &Spec{"test", time.Second, newTestCause})
	require.NoError(t, c.Err())
	require.NoError(t, context.Cause(c))
	_, ok := c.Deadline()
	require.True(t, ok)
	require.Nil(t, c.Value("some key"))
	c.Ended(clk.Now())
	require.Zero(t, fake.made.Load())
	c.Done()
	c.Done()
	require.EqualValues(t, 1, fake.made.Load(), "armed once")
	require.EqualValues(t, 1, fake.pending.Load())
	c.End()
	require.Zero(t, fake.pending.Load(), "End stops the timer")
}

// A lazy Ctx tells by the clock that its limit has passed, with the cause that an armed one has.
func TestLazyExpiry(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		c := b.new(context.Background(), 3*time.Millisecond)
		b.advance(3*time.Millisecond - 1)
		require.NoError(t, c.Err())
		b.advance(1)
		require.Equal(t, context.DeadlineExceeded, c.Err(), "exactly at its instant")
		require.Equal(t, &testCause{"test", 3 * time.Millisecond}, context.Cause(c))
		require.True(t, closed(c))
		if b.fake != nil {
			require.Zero(t, b.fake.made.Load(), "what is over needs no timer")
		}
		c.End()
		require.Equal(t, context.DeadlineExceeded, c.Err(), "what is on record stays")
	})
}

// context.Cause asks for Value alone when a wrapper has its own Err: that too must find the limit.
func TestCauseOfLazyExpiryThroughValue(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		type k struct{}
		c := b.new(context.WithValue(context.Background(), k{}, 7), 2*time.Millisecond)
		type other struct{}
		wrapped := context.WithValue(c, other{}, 1)
		b.advance(2 * time.Millisecond)
		require.Equal(t, &testCause{"test", 2 * time.Millisecond}, context.Cause(wrapped))
		require.Equal(t, 7, c.Value(k{}), "values are the parent's, before and after")
		c.End()
	})
}

// A user's key may be a *int as package context's own is.
func TestValueOfIntPointerKey(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		mine := new(int)
		c := b.new(context.WithValue(context.Background(), mine, "value"), time.Millisecond)
		require.Equal(t, "value", c.Value(mine))
		c.Done()
		require.Equal(t, "value", c.Value(mine))
		b.advance(time.Millisecond)
		require.Equal(t, "value", c.Value(mine))
		c.End()
		untouched := b.new(context.WithValue(context.Background(), mine, "value"), time.Millisecond)
		untouched.End()
		require.Equal(t, "value", untouched.Value(mine))
	})
}

func TestEndOfUntouched(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		parent, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		c := b.new(parent, time.Second)
		c.End()
		c.End()
		require.Equal(t, context.Canceled, c.Err())
		require.True(t, closed(c))
		cancel(errGone)
		require.Equal(t, context.Canceled, context.Cause(c), "what the parent does later is not this one's cause")
		child, cancelChild := context.WithCancel(c)
		defer cancelChild()
		require.Equal(t, context.Canceled, child.Err())
		if b.fake != nil {
			require.Zero(t, b.fake.made.Load())
		}
	})
}

func TestEndOfArmed(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		c := b.new(context.Background(), time.Second)
		child, cancel := context.WithCancel(c)
		defer cancel()
		require.False(t, closed(c))
		c.End()
		synctest.Wait()
		require.Equal(t, context.Canceled, c.Err())
		require.Equal(t, context.Canceled, context.Cause(c))
		require.Equal(t, context.Canceled, child.Err())
		if b.fake != nil {
			require.Zero(t, b.fake.pending.Load())
		}
	})
}

// Deadline is one instant for good, never after the limit's, and the same before and after arming.
func TestDeadlineStays(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		want := time.Now().Add(5 * time.Millisecond)
		for _, touch := range []func(*Ctx){
			func(*Ctx) {}, func(c *Ctx) { c.Done() }, func(c *Ctx) { c.End() }, func(c *Ctx) { c.Done(); c.End() },
			func(c *Ctx) { c.Deadline(); c.Done() }, func(c *Ctx) { c.Deadline(); c.End() },
		} {
			c := b.new(context.Background(), 5*time.Millisecond)
			touch(c)
			deadline, ok := c.Deadline()
			require.True(t, ok)
			require.True(t, deadline.Equal(want), "%v, want %v", deadline, want)
			c.End()
		}
		c := b.new(context.Background(), 5*time.Millisecond)
		defer c.End()
		b.advance(7 * time.Millisecond)
		require.Error(t, c.Err())
		deadline, _ := c.Deadline()
		require.True(t, deadline.Equal(want), "also when it was found afterwards")
	})
}

// In real time, outside a bubble, finding the deadline takes time itself: it may be early by that, and never late.
func TestDeadlineIsNeverLate(t *testing.T) {
	clk := clock.Of(nil)
	for range 1000 {
		c := New(context.Background(), clk, clk.Now()+int64(time.Hour), &Spec{"test", time.Hour, newTestCause})
		if deadline, _ := c.Deadline(); clk.At(deadline) > c.At() {
			t.Fatalf("deadline %d ns late", clk.At(deadline)-c.At())
		}
		first, _ := c.Deadline()
		c.Done()
		second, _ := c.Deadline()
		require.Equal(t, first, second)
		c.End()
	}
}

// Also where the parent, whose deadline is later, has ended first.
func TestDeadlineAfterTheParentsEnd(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		want := time.Now().Add(5 * time.Millisecond)
		parent, cancel := context.WithTimeout(context.Background(), time.Hour)
		cancel()
		c := b.new(parent, 5*time.Millisecond)
		defer c.End()
		require.True(t, closed(c))
		deadline, _ := c.Deadline()
		require.True(t, deadline.Equal(want), "%v, want %v", deadline, want)
	})
}

func TestDeadlineOfTheParent(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		parent, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
		defer cancel()
		want, _ := parent.Deadline()
		for _, d := range []time.Duration{3 * time.Millisecond, 4 * time.Millisecond} {
			c := b.new(parent, d)
			deadline, ok := c.Deadline()
			require.True(t, ok)
			require.Equal(t, want, deadline)
			require.Equal(t, b.after(d), c.At(), "At is what New got")
			c.End()
		}
		name, limit := b.new(parent, 9*time.Second).Limit()
		require.Equal(t, "test", name)
		require.Equal(t, 9*time.Second, limit)
	})
}

// Children register with the armed context as with package context's own: no goroutine, also below a WithValue.
func TestChildrenNeedNoGoroutine(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		type k struct{}
		c := b.new(context.Background(), 2*time.Millisecond)
		c.Done()
		before := runtime.NumGoroutine()
		var children []context.Context
		for i := range 50 {
			child, cancel := context.WithCancel(c)
			defer cancel()
			deeper, cancel := context.WithTimeout(context.WithValue(c, k{}, i), time.Hour)
			defer cancel()
			children = append(children, child, deeper)
		}
		require.Less(t, runtime.NumGoroutine(), before+10, "for 100 children")
		b.advance(2 * time.Millisecond)
		for _, child := range children {
			require.Equal(t, context.DeadlineExceeded, child.Err())
			require.Equal(t, context.Cause(c), context.Cause(child))
			require.True(t, closed(child))
		}
		require.IsType(t, (*testCause)(nil), context.Cause(c))
		c.End()
	})
}

// The parent's end reaches an armed Ctx with the parent's error and cause.
func TestParentEnds(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		parent, cancel := context.WithCancelCause(context.Background())
		for name, touch := range map[string]func(*Ctx){"lazy": func(*Ctx) {}, "armed": func(c *Ctx) { c.Done() }} {
			c := b.new(parent, time.Second)
			touch(c)
			defer func() {
				require.Equal(t, context.Canceled, c.Err(), name)
				require.Equal(t, errGone, context.Cause(c), name)
				require.True(t, closed(c), name)
				c.End()
				require.Equal(t, errGone, context.Cause(c), name)
			}()
		}
		cancel(errGone) // Err and Cause are right at once, not only when a goroutine has run
	})
}

// A Ctx registers with its parent when it is armed, by the parent's own AfterFunc where it has one, and End takes it back.
func TestEndTakesTheRegistrationBack(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		parent := &registry{Context: context.Background(), done: make(chan struct{})}
		c := b.new(parent, time.Second)
		require.Zero(t, parent.made)
		c.Done()
		require.Equal(t, 1, parent.made)
		require.Equal(t, 1, parent.live)
		c.End()
		require.Zero(t, parent.live)
	})
}

// registry is a context of somebody's own that counts who registered with it.
type registry struct {
	context.Context
	done       chan struct{}
	made, live int
}

func (r *registry) Done() <-chan struct{} { return r.done }

func (r *registry) AfterFunc(func()) (stop func() bool) {
	r.made++
	r.live++
	return func() bool { r.live--; return true }
}

// newCause is called once at most, and not where the limit cannot fire.
func TestCauseIsMadeOnce(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		made := 0
		count := func(string, time.Duration) error { made++; return errGone }
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		soon, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		for _, parent := range []context.Context{gone, soon} {
			c := New(parent, b.clk, b.after(time.Second), &Spec{"test", time.Second, count})
			c.Done()
			c.End()
		}
		untouched := New(context.Background(), b.clk, b.after(time.Second), &Spec{"test", time.Second, count})
		untouched.End()
		untouched.Done()
		require.Zero(t, made)
		c := New(context.Background(), b.clk, b.after(time.Millisecond), &Spec{"test", time.Millisecond, count})
		c.Done()
		c.Done()
		b.advance(time.Millisecond)
		require.Equal(t, errGone, context.Cause(c))
		c.End()
		require.Equal(t, 1, made)
	})
}

// End may come while another goroutine arms, and does not wait for it: what that made is released.
func TestEndWhileArming(t *testing.T) {
	eachClock(t, func(t *testing.T, b *testbed) {
		var c *Ctx
		c = New(context.Background(), b.clk, b.after(time.Second), &Spec{"test", time.Second, func(string, time.Duration) error {
			c.End() // as the other goroutine: arming is under way
			return errGone
		}})
		require.True(t, closed(c))
		require.Equal(t, context.Canceled, c.Err())
		if b.fake != nil {
			require.EqualValues(t, 1, b.fake.made.Load())
			require.Zero(t, b.fake.pending.Load())
		}
	})
}

func TestString(t *testing.T) {
	c := New(context.Background(), clock.Of(nil), 0, &Spec{"billing", 2 * time.Second, newTestCause})
	require.Equal(t, `context.Background.WithLimit("billing", 2s)`, c.String())
}

// One allocation, none of which is for the clock, the timer or the cause.
func TestUntouchedAllocatesOnce(t *testing.T) {
	spec := &Spec{"test", time.Hour, newTestCause}
	clk, at := clock.Of(nil), clock.Of(nil).Now()+int64(time.Hour)
	parent, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
	defer cancel()
	require.Equal(t, 1.0, testing.AllocsPerRun(1000, func() {
		c := New(parent, clk, at, spec)
		_ = c.Err()
		c.Ended(at - 1)
		c.End()
	}))
}
