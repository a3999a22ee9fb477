package guardtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/guardtest"
)

// Seats is a guard of one's own: it admits as many calls at once as it has seats.
type Seats struct{ free chan struct{} }

func NewSeats(n int) *Seats { return &Seats{free: make(chan struct{}, n)} }

func (s *Seats) Acquire(ctx context.Context) (leaf.Permit, error) {
	if ctx.Err() != nil { // takes nothing, and says how ctx ended
		return leaf.Permit{}, fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
	select {
	case s.free <- struct{}{}:
		return leaf.NewPermit(s, 0), nil
	default:
		return leaf.Permit{}, errNoSeat
	}
}

func (s *Seats) Settle(context.Context, uint64, leaf.Outcome) error {
	<-s.free
	return nil
}

var errNoSeat = &noSeat{errors.New("no seat")}

type noSeat struct{ error }

func (*noSeat) Rejected() bool                    { return true }
func (*noSeat) RetryAfter() (time.Duration, bool) { return 0, false }

func ExampleRun() {
	// In a file of tests: func TestSeats(t *testing.T) {
	testSeats := func(t *testing.T) {
		guardtest.Run(t, guardtest.Config{
			New:      func(testing.TB) leaf.Guard { return NewSeats(3) },
			Capacity: 3,
			Slots:    true,
		})
	}
	fmt.Println(passes("TestSeats", testSeats))
	// Output: true
}

// passes runs a test as go test does.
func passes(name string, test func(*testing.T)) bool {
	all := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: name, F: test}})
}
