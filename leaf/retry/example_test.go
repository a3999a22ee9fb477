package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/retry"
)

func ExampleDo() {
	r, err := retry.New(retry.Config{MaxAttempts: 3, Backoff: retry.Exponential(10 * time.Millisecond)})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempt := 0
	receipt, err := retry.Do(context.Background(), r, func(ctx context.Context) (string, error) {
		if attempt++; attempt < 3 {
			return "", errors.New("connection reset")
		}
		return "paid", nil
	})
	fmt.Println(receipt, err, attempt)
	// Output: paid <nil> 3
}

// What stopped the loop is told by an *Error around the last failure.
func ExampleError() {
	errDown := errors.New("service is down")
	r := retry.MustNew(retry.Config{Name: "billing", MaxAttempts: 2, Backoff: retry.Immediate})
	_, err := retry.Do(context.Background(), r, func(context.Context) (int, error) { return 0, errDown })
	fmt.Println(err)
	if stop, ok := errors.AsType[*retry.Error](err); ok {
		fmt.Println(stop.Reason, stop.Attempts, errors.Is(err, errDown))
	}
	// Output:
	// retry "billing": attempts_exhausted after 2 attempts: last failure: service is down
	// attempts_exhausted 2 true
}

func ExamplePermanent() {
	errNoFunds := errors.New("no funds")
	r := retry.MustNew(retry.Config{})
	attempt := 0
	_, err := retry.Do(context.Background(), r, func(context.Context) (int, error) {
		attempt++
		return 0, retry.Permanent(errNoFunds)
	})
	fmt.Println(err, errors.Is(err, errNoFunds), attempt)
	// Output: no funds true 1
}

// A Strict policy sends nothing that was not declared to be safe to repeat.
func ExampleDoSafe() {
	r := retry.MustNew(retry.Config{
		Strict:  true,
		Budget:  budget.MustNewTokens(budget.TokenConfig{Capacity: 10, Refill: 10, Per: time.Minute}),
		RetryIf: func(err error) bool { return true },
	})
	charge := func(context.Context) (string, error) { return "paid", nil }
	_, err := retry.Do(context.Background(), r, charge)
	fmt.Println(err)
	fmt.Println(retry.DoSafe(context.Background(), r, retry.Idempotent("order-4711", time.Hour), charge))
	// Output:
	// retry: unsafe_replay after 0 attempts: nothing declares that it may be repeated: want pipeline.Declare or retry.DoSafe with a Safety
	// paid <nil>
}

type throttledError struct{ wait time.Duration }

func (e *throttledError) Error() string                     { return "429 too many requests" }
func (e *throttledError) RetryAfter() (time.Duration, bool) { return e.wait, true }

// A wait that is too long for the policy is not slept, but handed to the caller.
func ExampleError_RetryAfter() {
	r := retry.MustNew(retry.Config{MaxRetryAfter: time.Minute})
	_, err := retry.Do(context.Background(), r, func(context.Context) (int, error) {
		return 0, &throttledError{wait: time.Hour}
	})
	if stop, ok := errors.AsType[*retry.Error](err); ok {
		wait, deferred := stop.RetryAfter()
		fmt.Println(stop.Reason, wait, deferred)
	}
	// Output: retry_after_exceeds_maximum_delay 1h0m0s true
}

// In a testing/synctest bubble an hour of backoff takes no time.
func TestExampleInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retry.MustNew(retry.Config{
			MaxAttempts: 2, Backoff: retry.Constant(time.Hour), MaxDelay: time.Hour, Jitter: retry.None,
		})
		start, attempt := time.Now(), 0
		_, err := retry.Do(t.Context(), r, func(context.Context) (int, error) {
			attempt++
			return attempt, map[int]error{1: errors.New("down")}[attempt]
		})
		if err != nil || time.Since(start) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
