package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/fairlead/fairlead/leaf/timeout"
)

// The callback's context ends after the limit; the error names it.
func ExampleDo() {
	clock := clockwork.NewFakeClock() // nil, the default, is real time
	quick := timeout.MustNew(timeout.Config{Name: "lookup", Limit: 200 * time.Millisecond, Clock: clock})

	v, err := timeout.Do(context.Background(), quick, func(ctx context.Context) (string, error) {
		return "in time", ctx.Err()
	})
	fmt.Println(v, err)

	_, err = timeout.Do(context.Background(), quick, func(ctx context.Context) (string, error) {
		clock.Advance(time.Second) // slow work
		return "", ctx.Err()
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, timeout.ErrTimeout), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// in time <nil>
	// timeout "lookup": limit of 200ms reached
	// true true
}

// A result that is read after the callback returned needs its context for longer.
func ExampleKeep() {
	limit := timeout.MustNew(timeout.Config{Limit: time.Minute})
	type stream struct {
		ctx   context.Context
		close func()
	}
	s, _ := timeout.Do(context.Background(), limit, func(ctx context.Context) (stream, error) {
		return stream{ctx: ctx, close: timeout.Keep(ctx)}, nil
	})
	fmt.Println("reading:", s.ctx.Err())
	s.close()
	fmt.Println("closed:", s.ctx.Err())
	// Output:
	// reading: <nil>
	// closed: context canceled
}
