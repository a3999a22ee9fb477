package budget_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/jonboulle/clockwork"
)

// A budget of ten retries, and ten more per minute, shared by whoever has it.
func ExampleNewTokens() {
	clock := clockwork.NewFakeClock()
	pool, err := budget.NewTokens(budget.TokenConfig{Capacity: 10, Refill: 10, Per: time.Minute, Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, _ := pool.Reserve()
	sent.Commit()
	cancelled, _ := pool.Reserve()
	fmt.Println(pool.Balance())
	cancelled.Cancel() // the retry was never sent
	fmt.Println(pool.Balance())
	clock.Advance(6 * time.Second)
	fmt.Println(pool.Balance())
	// Output:
	// 8
	// 9
	// 10
}

// One retry for every five calls, and one per second in any case.
func ExampleNewRatio() {
	ratio := budget.MustNewRatio(budget.RatioConfig{MinPerSecond: 1, Clock: clockwork.NewFakeClock()})
	for range 25 {
		ratio.Deposit()
	}
	fmt.Println(ratio.Balance())
	// Output: 15
}

// What is left of a request's time goes to the next service, which takes it as its own deadline.
func ExampleInject() {
	clock := clockwork.NewFakeClock()
	ctx, cancel := context.WithDeadline(context.Background(), clock.Now().Add(1500*time.Millisecond))
	defer cancel()
	header := http.Header{}
	budget.Inject(ctx, clock, header)
	fmt.Println(header.Get(budget.Header))

	served, cancel := budget.FromHeader(context.Background(), header)
	defer cancel()
	_, ok := served.Deadline()
	fmt.Println(ok)
	// Output:
	// 1500
	// true
}

// A wait that would end too late is not worth starting.
func ExampleFits() {
	clock := clockwork.NewFakeClock()
	ctx, cancel := context.WithDeadline(context.Background(), clock.Now().Add(time.Second))
	defer cancel()
	fmt.Println(budget.Fits(ctx, clock, 400*time.Millisecond, 500*time.Millisecond))
	fmt.Println(budget.Fits(ctx, clock, 600*time.Millisecond, 500*time.Millisecond))
	// Output:
	// true
	// false
}
