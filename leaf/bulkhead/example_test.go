package bulkhead_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
)

func Example() {
	ctx := context.Background()
	db := bulkhead.MustNew(bulkhead.Config{Name: "db", MaxConcurrent: 1})

	answer, err := leaf.Do(ctx, db, func(ctx context.Context) (string, error) {
		// The one slot is taken while this runs.
		_, err := leaf.Do(ctx, db, func(context.Context) (string, error) { return "never", nil })
		fmt.Println(err, errors.Is(err, bulkhead.ErrFull))
		return "42 rows", nil
	})
	fmt.Println(answer, err, db.InUse())
	// Output:
	// bulkhead "db": full (1 at once) true
	// 42 rows <nil> 0
}

func ExampleBulkhead_Update() {
	db := bulkhead.MustNew(bulkhead.Config{Name: "db", MaxConcurrent: 2})
	a, _ := db.Acquire(context.Background())
	b, _ := db.Acquire(context.Background())

	_ = db.Update(bulkhead.Config{Name: "db", MaxConcurrent: 1})
	fmt.Println(db.InUse(), "inside,", db.Config().MaxConcurrent, "allowed")

	_ = a.Settle(context.Background(), leaf.Outcome{})
	_ = b.Settle(context.Background(), leaf.Outcome{})
	fmt.Println(db.InUse(), "inside")
	// Output:
	// 2 inside, 1 allowed
	// 0 inside
}
