package rediscooldown_test

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/cooldown/rediscooldown"
	"github.com/redis/go-redis/v9"
)

// Every process makes its own under the same name. (No output is shown: it needs a server.)
func ExampleNew() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	partner, err := rediscooldown.New(client, cooldown.Config{Name: "partner"}, rediscooldown.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer partner.Close(ctx)

	partner.Hint(ctx, 30*time.Second) // a 429 with Retry-After: 30, in whichever process
	if _, err := partner.Acquire(ctx); err != nil {
		fmt.Println(err) // in all of them: cooldown "partner": cooling down for another 30s
	}
}
