package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/ratelimit/redislimit"
	"github.com/redis/go-redis/v9"
)

// A fleet of up to 8 processes that calls a partner 100 times a second at most. It has no Output because it needs a server.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	partner, err := redislimit.New(client,
		ratelimit.Config{Name: "partner", Rate: 100, Burst: 20, MaxWait: 200 * time.Millisecond},
		redislimit.Options{Instances: 8})
	if err != nil {
		panic(err)
	}
	defer partner.Close(context.Background())

	answer, err := leaf.Do(context.Background(), partner, func(context.Context) (string, error) { return "hello", nil })
	if limited, ok := errors.AsType[*ratelimit.LimitedError](err); ok {
		fmt.Println("come back in", limited.Wait)
		return
	}
	fmt.Println(answer, err)
}

// Without a server the outage policy decides: here a local limiter of this process's share.
func ExampleNew_outage() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer client.Close()
	l, err := redislimit.New(client,
		ratelimit.Config{Name: "api", Rate: 1, Per: time.Hour, Burst: 6}, redislimit.Options{Instances: 3})
	if err != nil {
		panic(err)
	}
	defer l.Close(context.Background())
	for range 3 {
		fmt.Println(l.AllowN(context.Background(), 1) == nil)
	}
	// Output:
	// true
	// true
	// false
}
