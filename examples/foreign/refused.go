package main

import (
	"context"
	"fmt"
	"time"
)

// Refused is what the three guards say instead of admitting. Two methods make a refusal of any error: a pipeline and package
// rejection look for nothing else.
type Refused struct {
	By   error
	Wait time.Duration // 0 = unknown
}

func (r *Refused) Error() string                     { return "refused: " + r.By.Error() }
func (r *Refused) Unwrap() error                     { return r.By }
func (r *Refused) Rejected() bool                    { return true }
func (r *Refused) RetryAfter() (time.Duration, bool) { return r.Wait, r.Wait > 0 }

// refuse is ctx's own error where ctx is done, for that is no refusal: nobody is there any more who could come back.
func refuse(ctx context.Context, by error, wait time.Duration) error {
	switch err, cause := ctx.Err(), context.Cause(ctx); {
	case err == nil:
		return &Refused{by, wait}
	case err == cause:
		return err
	default:
		return fmt.Errorf("%w: %w", err, cause)
	}
}
