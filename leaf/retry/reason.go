package retry

import "fmt"

// Reason says why a loop stopped. The zero Reason is no reason.
type Reason uint8

const (
	_                             Reason = iota
	AttemptsExhausted                    // attempts_exhausted
	RetryBudgetExhausted                 // retry_budget_exhausted; matches ErrBudgetExhausted
	RetryDelayExceedsDeadline            // retry_delay_exceeds_deadline; matches context.DeadlineExceeded
	RetryAfterExceedsDeadline            // retry_after_exceeds_deadline; a deferral; matches context.DeadlineExceeded
	RetryAfterExceedsMaximumDelay        // retry_after_exceeds_maximum_delay; a deferral
	MaxElapsedExceeded                   // max_elapsed_exceeded; a deferral where the wait was asked for
	Refused                              // refused: a guard refused a later attempt
	ContextEnded                         // context_ended; matches ctx's Err and Cause
	UnsafeReplay                         // unsafe_replay: not declared, or the declaration has expired
)

var reasons = [...]string{
	AttemptsExhausted:             "attempts_exhausted",
	RetryBudgetExhausted:          "retry_budget_exhausted",
	RetryDelayExceedsDeadline:     "retry_delay_exceeds_deadline",
	RetryAfterExceedsDeadline:     "retry_after_exceeds_deadline",
	RetryAfterExceedsMaximumDelay: "retry_after_exceeds_maximum_delay",
	MaxElapsedExceeded:            "max_elapsed_exceeded",
	Refused:                       "refused",
	ContextEnded:                  "context_ended",
	UnsafeReplay:                  "unsafe_replay",
}

// String is the snake-case name; "" for the zero Reason.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}
