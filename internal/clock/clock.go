// Package clock turns a clockwork.Clock (nil = real time) into what the leaves keep: int64 monotonic nanoseconds.
//
// Real time is read as time.Since(a fixed epoch), which is cheaper than time.Now and blind to wall-clock steps. Of clockwork
// only Now, Since, Until, NewTimer and AfterFunc are used: its contexts block in Err() while they live.
//
// A reading may still jump by decades: a testing/synctest bubble starts in 2000, and a package-level guard crosses into it
// and back. Whoever stores an instant treats one that is further ahead than its policy can produce as "reset".
package clock

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/fairlead/fairlead/internal/reading"
	"github.com/jonboulle/clockwork"
)

// epoch is when the process began to count. All real-time readings share it, so that they can be compared.
var epoch = time.Now()

// Clock is a source of time; the zero Clock is real time. It is a value, safe for concurrent use.
type Clock struct {
	fake *fake // nil = real time. One word: a Clock is copied wherever time is read
}

// fake is an injected clock, and when it began to count.
type fake struct {
	clockwork.Clock
	epoch time.Time
}

// Of wraps c; nil, and clockwork's own real clock, are real time.
func Of(c clockwork.Clock) Clock {
	if IsReal(c) {
		return Clock{}
	}
	return Clock{&fake{Clock: c, epoch: c.Now()}}
}

var realType = reflect.TypeOf(clockwork.NewRealClock())

// IsReal says that c stands for real time.
func IsReal(c clockwork.Clock) bool { return c == nil || reflect.TypeOf(c) == realType }

// Same says that two configured clocks are one source of time.
func Same(a, b clockwork.Clock) bool {
	if IsReal(a) || IsReal(b) {
		return IsReal(a) && IsReal(b)
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

// Real says that c is real time.
func (c Clock) Real() bool { return c.fake == nil }

// Name is what a message calls c.
func Name(c clockwork.Clock) string {
	if IsReal(c) {
		return "real time"
	}
	return fmt.Sprintf("a %T", c)
}

// Another is what a message says of a Clock that may not become next after it was made as was, and what was wanted.
func Another(was, next clockwork.Clock) (is, want string) {
	is, want = Name(next), "the one that it was made with, "+Name(was)+": it may not change"
	if is == Name(was) {
		is = fmt.Sprintf("another %T", next)
	}
	return is, want
}

// Now is monotonic nanoseconds since the clock's epoch.
func (c Clock) Now() int64 {
	if c.fake == nil {
		return int64(time.Since(epoch))
	}
	return int64(c.fake.Since(c.fake.epoch))
}

// Reading is Now for handing on, of a clock that is Real.
func (c Clock) Reading() reading.Instant { return reading.At(c.Now()) }

// Time is the instant as a time.Time, for events and for comparing with a context's deadline.
func (c Clock) Time() time.Time {
	if c.fake == nil {
		return time.Now()
	}
	return c.fake.Now()
}

// At is t as an instant on Now's scale. A t with a monotonic reading (every deadline made by package context) costs no
// clock read; one without is placed by the wall clock's present distance to it.
func (c Clock) At(t time.Time) int64 {
	if c.fake != nil {
		return int64(t.Sub(c.fake.epoch))
	}
	if t != t.Round(0) { // Round(0) strips a monotonic reading
		return int64(t.Sub(epoch))
	}
	return add(c.Now(), int64(time.Until(t)))
}

// TimeOf is At's inverse, never later than the instant that it stands for.
func (c Clock) TimeOf(at int64) time.Time {
	if c.fake != nil {
		return c.fake.epoch.Add(time.Duration(at))
	}
	now := time.Now() // read first: what passes between the two readings makes the result earlier, not later
	return now.Add(time.Duration(add(at, -c.Now())))
}

// Add is at+d, saturating.
func Add(at int64, d time.Duration) int64 { return add(at, int64(d)) }

func add(a, b int64) int64 {
	switch s := a + b; {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	default:
		return s
	}
}

// Until is the time until t; negative once it has passed.
func (c Clock) Until(t time.Time) time.Duration {
	if c.fake == nil {
		return time.Until(t)
	}
	return c.fake.Until(t)
}

// Left is the time until ctx's deadline, never negative; ok is false without a deadline.
func (c Clock) Left(ctx context.Context) (left time.Duration, ok bool) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0, false
	}
	return max(0, c.Until(deadline)), true
}

// Timer fires once.
type Timer struct {
	C    <-chan time.Time
	stop func() bool
}

// NewTimer fires after d.
func (c Clock) NewTimer(d time.Duration) Timer {
	if c.fake == nil {
		t := time.NewTimer(d)
		return Timer{C: t.C, stop: t.Stop}
	}
	t := c.fake.NewTimer(d)
	return Timer{C: t.Chan(), stop: t.Stop}
}

// Stop ends the timer; it says whether it had not fired yet.
func (t Timer) Stop() bool { return t.stop() }

// AfterFunc runs f in a goroutine of its own after d; stop says whether it kept f from running.
func (c Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if c.fake == nil {
		return time.AfterFunc(d, f).Stop
	}
	return c.fake.AfterFunc(d, f).Stop
}
