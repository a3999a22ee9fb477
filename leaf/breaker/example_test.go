package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/jonboulle/clockwork"
)

// Five failures in a row open the circuit of a quiet service; after the open time one probe decides.
func Example() {
	clock := clockwork.NewFakeClock()
	billing := breaker.MustNew(breaker.Config{
		Name: "billing", OpenFor: 4 * time.Second, Clock: clock,
		OnChange: func(c breaker.Change) { fmt.Printf("%v -> %v: %s\n", c.From, c.To, c.Reason) },
	})
	ctx := context.Background()
	down := errors.New("connection refused")

	for range 5 {
		_, _ = leaf.Do(ctx, billing, func(context.Context) (int, error) { return 0, down })
	}
	_, err := leaf.Do(ctx, billing, func(context.Context) (int, error) { return 1, nil })
	fmt.Println(err)

	clock.Advance(4 * time.Second)
	v, err := leaf.Do(ctx, billing, func(context.Context) (int, error) { return 1, nil })
	fmt.Println(v, err)

	// Output:
	// closed -> open: 5 failures in a row
	// breaker "billing": open, next probe in 4s
	// open -> half-open: open time is over
	// half-open -> closed: 1 probe succeeded
	// 1 <nil>
}

// An operator takes a dependency out, whatever it answers, and puts it back.
func ExampleBreaker_ForceOpen() {
	ctx := context.Background()
	b := breaker.MustNew(breaker.Config{Name: "search"})
	_ = b.ForceOpen(ctx)
	_, err := b.Acquire(ctx)
	fmt.Println(err, errors.Is(err, breaker.ErrOpen))
	_ = b.Auto(ctx)
	fmt.Println(b.State())
	// Output:
	// breaker "search": open true
	// closed
}

// Callers with tight deadlines must never open the circuit.
func ExampleIgnoreContext() {
	isFailure := breaker.IgnoreContext(nil)
	fmt.Println(isFailure(errors.New("down")), isFailure(context.DeadlineExceeded), isFailure(nil))
	// Output: true false false
}

// Both forms of a count window, and a time window.
func ExampleWindow() {
	fmt.Println(breaker.Count(100))
	fmt.Println(breaker.Count(100).Within(time.Minute))
	fmt.Println(breaker.Time(10 * time.Second))
	// Output:
	// count(100)
	// count(100) within 1m0s
	// time(10s)
}

type hostKey struct{}

// One circuit per host, of at most 1000 hosts. A host that is not called any more is not probed either: idle is "not open", since
// "closed" would never become true for one that died, and its place would be taken for good.
func Example_perHost() {
	circuits := leaf.Keyed(1000,
		func(ctx context.Context) string { host, _ := ctx.Value(hostKey{}).(string); return host },
		func(host string) (*breaker.Breaker, error) {
			return breaker.New(breaker.Config{Name: host, Consecutive: 1})
		},
		func(b *breaker.Breaker) bool { return b.State() != breaker.Open })

	for _, host := range []string{"dead.example", "dead.example", "alive.example"} {
		ctx := context.WithValue(context.Background(), hostKey{}, host)
		_, err := leaf.Do(ctx, circuits, func(context.Context) (int, error) {
			if host == "dead.example" {
				return 0, errors.New("connection refused")
			}
			return 1, nil
		})
		fmt.Println(host, errors.Is(err, breaker.ErrOpen), err != nil)
	}
	// Output:
	// dead.example false true
	// dead.example true true
	// alive.example false false
}
