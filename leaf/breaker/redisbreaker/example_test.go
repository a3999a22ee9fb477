package redisbreaker_test

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/breaker/redisbreaker"
	"github.com/redis/go-redis/v9"
)

// Every process that does this shares one circuit.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()

	b, err := redisbreaker.New(client, breaker.Config{
		Name:     "billing",
		OpenFor:  30 * time.Second,
		OnChange: func(c breaker.Change) { fmt.Println(c.Name, c.To, c.Reason) },
	}, redisbreaker.Options{
		MinReporters: 2, // one sick process must not open it for all
	})
	if err != nil {
		panic(err)
	}
	defer b.Close(context.Background())

	_, err = leaf.Do(context.Background(), b, func(context.Context) (string, error) { return "receipt", nil })
	fmt.Println(err)
}

// An operator takes a downstream out of service for the whole fleet.
func ExampleBreaker_ForceOpen() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	b, err := redisbreaker.New(client, breaker.Config{Name: "billing"}, redisbreaker.Options{})
	if err != nil {
		panic(err)
	}
	defer b.Close(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := b.ForceOpen(ctx); err != nil {
		fmt.Println("the fleet may not have been told:", err)
	}
}
