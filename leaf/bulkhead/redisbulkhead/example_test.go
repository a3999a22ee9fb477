package redisbulkhead_test

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/bulkhead/redisbulkhead"
	"github.com/redis/go-redis/v9"
)

// At most 32 queries at once in the whole fleet. It needs a server, so it is compiled only.
func Example() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()

	db, err := redisbulkhead.New(client,
		bulkhead.Config{Name: "db", MaxConcurrent: 32, MaxWait: time.Second},
		redisbulkhead.Options{Instances: 4, LeaseTTL: 30 * time.Second})
	if err != nil {
		panic(err)
	}
	defer db.Close(ctx)

	rows, err := leaf.Do(ctx, db, func(ctx context.Context) (int, error) { return 42, nil })
	fmt.Println(rows, err)
}
