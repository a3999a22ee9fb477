// Readme is the example of README.md, which shows what follows the imports, and what it prints.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

var charge = pipeline.For("billing").
	Timeout(timeout.MustNew(timeout.Config{Limit: 2 * time.Second})). // the whole call, waits included
	Retry(retry.MustNew(retry.Config{MaxAttempts: 3, Backoff: retry.Exponential(10 * time.Millisecond)})).
	Breaker(breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 5, OpenFor: 30 * time.Second})).
	Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "bank", MaxConcurrent: 32})).
	AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 500 * time.Millisecond})).MustBuild()

func main() {
	down := errors.New("bank: 503")
	replies := []error{down, nil, down, down, down, down, down} // a blip, then an outage
	pay := func(context.Context) (receipt string, err error) {
		err, replies = replies[0], replies[1:]
		return "paid", err
	}
	for range 4 {
		receipt, err := pipeline.Do(context.Background(), charge, pay)
		wait, _ := rejection.RetryAfter(err)
		fmt.Printf("%q: failed %t, circuit open %t, never ran %t, wait %v\n", receipt,
			err != nil, errors.Is(err, breaker.ErrOpen), rejection.Is(err), wait.Round(time.Second))
	}
}
