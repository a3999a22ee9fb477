package leaf_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

var errFull = &fullError{}

type fullError struct{}

func (*fullError) Error() string                     { return "no slot" }
func (*fullError) Rejected() bool                    { return true }
func (*fullError) RetryAfter() (time.Duration, bool) { return 0, false } // nobody knows

// slots is a guard in twenty lines: at most max calls at once.
type slots struct {
	max   int64
	inUse atomic.Int64
}

func (s *slots) Acquire(ctx context.Context) (leaf.Permit, error) {
	if ctx.Err() != nil { // takes nothing, and says how ctx ended
		return leaf.Permit{}, fmt.Errorf("%w: %w", ctx.Err(), context.Cause(ctx))
	}
	if s.inUse.Add(1) > s.max {
		s.inUse.Add(-1)
		return leaf.Permit{}, errFull
	}
	return leaf.NewPermit(s, 0), nil
}

func (s *slots) TryAcquire(ctx context.Context) (leaf.Permit, error) { return s.Acquire(ctx) }

func (s *slots) Settle(context.Context, uint64, leaf.Outcome) error {
	s.inUse.Add(-1)
	return nil
}

// Any guard alone, a guard of your own too.
func ExampleDo() {
	guard := &slots{max: 1}
	greeting, err := leaf.Do(context.Background(), guard, func(ctx context.Context) (string, error) {
		_, err := leaf.Do(ctx, guard, func(context.Context) (string, error) { return "unreachable", nil })
		fmt.Println("inner:", err)
		return "hello", nil
	})
	fmt.Println("outer:", greeting, err)
	fmt.Println("in use:", guard.inUse.Load())
	// Output:
	// inner: no slot
	// outer: hello <nil>
	// in use: 0
}

type hostKey struct{}

// One guard per host: a slow host takes nobody else's slots.
func ExampleKeyed() {
	guard := leaf.Keyed(1000,
		func(ctx context.Context) string { host, _ := ctx.Value(hostKey{}).(string); return host },
		func(host string) (*slots, error) { return &slots{max: 1}, nil },
		func(s *slots) bool { return s.inUse.Load() == 0 })

	to := func(host string) context.Context { return context.WithValue(context.Background(), hostKey{}, host) }
	_, err := leaf.Do(to("slow.example"), guard, func(context.Context) (int, error) {
		_, err := leaf.Do(to("slow.example"), guard, func(context.Context) (int, error) { return 0, nil })
		fmt.Println("the slow host once more:", err)
		_, err = leaf.Do(to("fast.example"), guard, func(context.Context) (int, error) { return 0, nil })
		fmt.Println("another host meanwhile:", err)
		return 0, nil
	})
	fmt.Println("the slow host:", err)
	// Output:
	// the slow host once more: no slot
	// another host meanwhile: <nil>
	// the slow host: <nil>
}

// The first day in production: see what a guard would refuse, before it does.
func ExampleShadow() {
	guard := leaf.Shadow(&slots{max: 1}, func(_ context.Context, refusal error) { fmt.Println("would refuse:", refusal) })
	_, err := leaf.Do(context.Background(), guard, func(ctx context.Context) (int, error) {
		return leaf.Do(ctx, guard, func(context.Context) (int, error) {
			fmt.Println("ran all the same")
			return 0, nil
		})
	})
	fmt.Println(err)
	// Output:
	// would refuse: no slot
	// ran all the same
	// <nil>
}

// notFound is an error that a breaker should take for a success: the other side answered.
type notFound struct{}

func (notFound) Error() string                     { return "404" }
func (notFound) Judge(o leaf.Outcome) leaf.Outcome { o.Err = nil; return o }

// What guards are told of an outcome.
func ExampleOutcome_Judged() {
	for _, err := range []error{errors.New("boom"), errFull, notFound{}} {
		o := leaf.Outcome{Err: err}.Judged()
		fmt.Println(o.Verdict, o.Err)
	}
	// Output:
	// returned boom
	// ignored no slot
	// returned <nil>
}
