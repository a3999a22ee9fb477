package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

func explain(err error) string {
	wait, _ := rejection.RetryAfter(err) // also of a failure: the other side's own Retry-After
	if rejection.Is(err) {
		return fmt.Sprintf("never ran: may be re-queued, in %v", wait.Round(time.Second))
	}
	if stop, ok := errors.AsType[*retry.Error](err); ok {
		return fmt.Sprintf("ran %d times, then %v; last failure: %v", stop.Attempts, stop.Reason, stop.Last)
	}
	if limit, ok := errors.AsType[*timeout.Error](err); ok {
		return fmt.Sprintf("ran, and a limit of %v of ours cut it", limit.Limit)
	}
	if ran, ok := errors.AsType[*pipeline.RanError](err); ok {
		return fmt.Sprintf("ran, and met a refusal further on: %v", ran.Err)
	}
	return fmt.Sprintf("its own failure, or its context's: %v", err)
}
