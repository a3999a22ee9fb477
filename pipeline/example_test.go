package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// A pipeline is built once, from layers given in any order, and used by every call.
func Example() {
	charge := pipeline.For("billing").
		Timeout(timeout.MustNew(timeout.Config{Limit: 2 * time.Second})).
		Retry(retry.MustNew(retry.Config{MaxAttempts: 3, Backoff: retry.Immediate})).
		Breaker(breaker.MustNew(breaker.Config{Name: "bank"})).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Name: "bank", Rate: 100, Burst: 20})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "bank", MaxConcurrent: 32})).
		AttemptTimeout(timeout.MustNew(timeout.Config{Limit: 500 * time.Millisecond})).
		MustBuild()
	fmt.Println(charge)

	attempts := 0
	receipt, err := pipeline.Do(context.Background(), charge, func(ctx context.Context) (string, error) {
		if attempts++; attempts < 3 {
			return "", errors.New("connection reset")
		}
		return fmt.Sprintf("receipt of attempt %d", attempts), nil
	})
	fmt.Println(receipt, err)
	// Output:
	// billing: timeout 2s > retry > breaker "bank" > ratelimit "bank" > bulkhead "bank" > attempt-timeout 500ms > fn
	// receipt of attempt 3 <nil>
}

// A refusal says that nothing was sent. OnRejected names it in the program's own words, and the wait stays.
func ExampleBuilder_OnRejected() {
	quota := ratelimit.MustNew(ratelimit.Config{Name: "mail", Rate: 1, Per: time.Hour})
	send := pipeline.For("mail").
		RateLimit(quota).
		OnRejected(func(ctx context.Context, err error) error { return fmt.Errorf("mail is busy: %w", err) }).
		MustBuild()
	deliver := func(context.Context) error { fmt.Println("sent"); return nil }

	_ = send.Run(context.Background(), deliver)
	err := send.Run(context.Background(), deliver)
	wait, ok := rejection.RetryAfter(err)
	fmt.Println(rejection.Is(err), errors.Is(err, ratelimit.ErrLimited), wait > 59*time.Minute, ok)
	// Output:
	// sent
	// true true true true
}

// A fallback is asked for every failure but the caller's own cancelling.
func ExampleDoOr() {
	read := pipeline.For("catalogue").MustBuild()
	price, err := pipeline.DoOr(context.Background(), read,
		func(context.Context) (int, error) { return 0, errors.New("no route to host") },
		func(_ context.Context, err error) (int, error) {
			fmt.Println("from the cache:", err)
			return 42, nil
		})
	fmt.Println(price, err)
	// Output:
	// from the cache: no route to host
	// 42 <nil>
}

// A report tells how a call went.
func ExampleDoDetailed() {
	read := pipeline.For("catalogue").
		Retry(retry.MustNew(retry.Config{MaxAttempts: 2, Backoff: retry.Immediate})).
		MustBuild()
	_, report, err := pipeline.DoDetailed(context.Background(), read, func(context.Context) (int, error) {
		return 0, errors.New("reset")
	})
	fmt.Println(report.Disposition, report.Reason, report.Attempts, len(report.History), report.Last)
	fmt.Println(err)
	// Output:
	// failed attempts_exhausted 2 2 reset
	// retry: attempts_exhausted after 2 attempts: last failure: reset
}

// Work that was done by a nested pipeline's callback is never taken for work that was not.
func ExampleRanError() {
	shut := breaker.MustNew(breaker.Config{Name: "bank"})
	_ = shut.ForceOpen(context.Background())
	bank := pipeline.For("bank").Breaker(shut).MustBuild()
	billing := pipeline.For("billing").MustBuild()

	err := billing.Run(context.Background(), func(ctx context.Context) error {
		// Something was done here already; then the bank's pipeline refuses.
		return bank.Run(ctx, func(context.Context) error { return nil })
	})
	_, ran := errors.AsType[*pipeline.RanError](err)
	fmt.Println(ran, rejection.Is(err), errors.Is(err, breaker.ErrOpen))
	// Output: true false true
}

// A callback that ignores its context holds its slot until it really ends; the call returns in time all the same.
func ExampleDoDetached() {
	slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
	p := pipeline.For("legacy").
		Bulkhead(slots).
		AttemptTimeout(timeout.MustNew(timeout.Config{Limit: time.Millisecond})).
		MustBuild()
	stuck, late := make(chan struct{}), make(chan string)
	_, err := pipeline.DoDetached(context.Background(), p, func(context.Context) (string, error) {
		<-stuck
		return "at last", nil
	}, pipeline.Detached[string]{Late: func(v string, _ error) { late <- v }})
	fmt.Println(err, "- in use:", slots.InUse())
	close(stuck)
	fmt.Println(<-late, "- in use:", slots.InUse())
	// Output:
	// timeout: limit of 1ms reached - in use: 1
	// at last - in use: 0
}

// Wrap makes a guarded function of the same signature.
func ExampleWrap() {
	lookup := pipeline.Wrap(pipeline.For("lookup").MustBuild(), func(context.Context) (string, error) { return "found", nil })
	fmt.Println(lookup(context.Background()))
	// Output: found <nil>
}
