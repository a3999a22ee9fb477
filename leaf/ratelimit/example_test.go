package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/jonboulle/clockwork"
)

func Example() {
	clock := clockwork.NewFakeClock()
	api := ratelimit.MustNew(ratelimit.Config{Name: "api", Rate: 3, Burst: 2, Clock: clock})

	fmt.Println(api.Allow(), api.Allow(), api.Allow())

	err := api.AllowN(1)
	limited, _ := errors.AsType[*ratelimit.LimitedError](err)
	fmt.Println(err)

	clock.Advance(limited.Wait)
	fmt.Println(api.Allow())
	// Output:
	// true true false
	// ratelimit "api": limited, enough tokens in 333.333334ms
	// true
}

func ExampleLimiter_Wait() {
	api := ratelimit.MustNew(ratelimit.Config{Name: "api", Rate: 1, Per: time.Minute, MaxWait: time.Second})
	fmt.Println(api.Wait(context.Background(), 1))

	// A minute does not fit into MaxWait, so it is refused now, and not in a second.
	err := api.Wait(context.Background(), 1)
	fmt.Println(errors.Is(err, ratelimit.ErrLimited))
	fmt.Println(api.Wait(context.Background(), 2))
	// Output:
	// <nil>
	// true
	// ratelimit: "api": n is 2: want 0 to 1 (Burst)
}

func ExampleNewQuota() {
	trial := ratelimit.MustNewQuota("trial", 2)
	fmt.Println(trial.AllowN(2))
	fmt.Println(trial.AllowN(1))
	// Output:
	// <nil>
	// ratelimit "trial": not enough tokens left, never refilled
}
