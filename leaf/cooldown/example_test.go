package cooldown_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/jonboulle/clockwork"
)

func Example() {
	ctx, clock := context.Background(), clockwork.NewFakeClock()
	api := cooldown.MustNew(cooldown.Config{Name: "api", Clock: clock})

	api.Hint(ctx, 30*time.Second) // the server said Retry-After: 30
	_, err := api.Acquire(ctx)
	fmt.Println(err, errors.Is(err, cooldown.ErrCooling))

	clock.Advance(30 * time.Second)
	_, err = api.Acquire(ctx)
	fmt.Println(err)
	// Output:
	// cooldown "api": cooling down for another 30s true
	// <nil>
}
