package retry

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"
)

var (
	ops  = flag.Int("ops", 100_000, "operations of each model test")
	seed = flag.Uint64("seed", 0, "seed of the model tests; 0 = a new one")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRand is a random source whose seed is printed when the test fails.
func newRand(t *testing.T) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with -seed %d -ops %d", s, *ops)
		}
	})
	return rand.New(rand.NewPCG(s, 0))
}

var (
	errA        = errors.New("a")
	errB        = errors.New("b")
	errShutdown = errors.New("shutdown")
)

// newClock is so far ahead that no context's own timer, which runs on real time, fires.
func newClock() *clockwork.FakeClock {
	return clockwork.NewFakeClockAt(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
}

// pending says whether a timer is waiting on clock, without waiting for one.
func pending(clock *clockwork.FakeClock) bool {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	return clock.BlockUntilContext(done, 1) == nil
}

// throttled is a failure with a wait that the other side asked for.
type throttled struct{ wait time.Duration }

func (t *throttled) Error() string                     { return "throttled" }
func (t *throttled) RetryAfter() (time.Duration, bool) { return t.wait, true }

// refused is a guard's refusal.
type refused struct{ wait time.Duration }

func (r *refused) Error() string                     { return "refused" }
func (r *refused) Rejected() bool                    { return true }
func (r *refused) RetryAfter() (time.Duration, bool) { return r.wait, r.wait > 0 }

// fullUp is a refusal as a bulkhead's: its wait is an upper bound.
type fullUp struct{ refused }

func (f *fullUp) UpperBound() bool { return true }

// ran is what pipeline.RanError is: a callback ran, and somebody's refusal came out of it.
type ran struct{ err error }

func (r *ran) Error() string             { return "ran: " + r.err.Error() }
func (r *ran) Unwrap() error             { return r.err }
func (r *ran) Rejected() bool            { return false }
func (r *ran) NestedRefusal(ended.Asked) {}

// calls is a scripted callback that notes when it ran. After the script it goes on with the last entry.
type calls struct {
	start  time.Time
	at     []time.Duration
	script []error
}

func (c *calls) fn(context.Context) (int, error) {
	if c.start.IsZero() {
		c.start = time.Now()
	}
	c.at = append(c.at, time.Since(c.start))
	n := len(c.at)
	return n, c.script[min(n, len(c.script))-1]
}

func script(errs ...error) *calls { return &calls{script: errs, start: time.Now()} }

func seconds(s ...float64) (d []time.Duration) {
	for _, s := range s {
		d = append(d, time.Duration(s*float64(time.Second)))
	}
	return d
}
