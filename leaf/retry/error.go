package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/ended"
)

// ErrBudgetExhausted matches (errors.Is) every [*Error] whose Reason is RetryBudgetExhausted.
var ErrBudgetExhausted = errors.New("retry: budget exhausted")

// Error is a stop of the loop. Last is always reachable by errors.Is and errors.As, and so is Stop.
type Error struct {
	Attempts int           // how many times fn ran
	Reason   Reason        // why it stopped
	Last     error         // fn's last failure; nil if it never ran
	Stop     error         // what stopped it, where that is an error of its own: the refusal, ctx's error and cause
	Wait     time.Duration // the wait that was asked for, or that did not fit; 0 = none

	name  string        // of the policy
	asked time.Duration // what was asked for, which a delay of our own that did not fit is longer than; 0 = nothing
}

// Error tells the reason, the attempts and Last; the policy's name, Stop and Wait where there are any.
func (e *Error) Error() string {
	if e == nil {
		return "retry: nil"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s after %d attempt", check.Called("retry", e.name), e.Reason, e.Attempts)
	if e.Attempts != 1 {
		b.WriteByte('s')
	}
	if e.Wait > 0 {
		fmt.Fprintf(&b, " (wait %v)", e.Wait)
	}
	switch {
	case e.Reason != UnsafeReplay:
	case e.Attempts == 0:
		b.WriteString(": nothing declares that it may be repeated: want pipeline.Declare or retry.DoSafe with a Safety")
	default:
		b.WriteString(": the declaration has expired, or would before the next attempt: want a longer one, or shorter delays")
	}
	if e.Stop != nil {
		fmt.Fprintf(&b, ": %v", e.Stop)
	}
	if e.Last != nil {
		fmt.Fprintf(&b, ": last failure: %v", e.Last)
	}
	return b.String()
}

// Unwrap is Last and Stop, nils left out.
func (e *Error) Unwrap() []error {
	if e == nil {
		return nil
	}
	tree := make([]error, 0, 2)
	if e.Last != nil {
		tree = append(tree, e.Last)
	}
	if e.Stop != nil {
		tree = append(tree, e.Stop)
	}
	return tree
}

// Is matches [ErrBudgetExhausted] and context.DeadlineExceeded where Reason says so.
func (e *Error) Is(target error) bool {
	if e == nil {
		return false
	}
	switch e.Reason {
	case RetryBudgetExhausted:
		return target == ErrBudgetExhausted
	case RetryDelayExceedsDeadline, RetryAfterExceedsDeadline:
		return target == context.DeadlineExceeded
	}
	return false
}

// Rejected is false: a call that may have run is never a rejection.
func (e *Error) Rejected() bool { return false }

// RetryAfter is the wait that somebody asked for: Wait, or less where that is a delay of our own that did not fit.
func (e *Error) RetryAfter() (time.Duration, bool) {
	if e == nil {
		return 0, false
	}
	switch e.Reason {
	case RetryAfterExceedsDeadline, RetryAfterExceedsMaximumDelay, Refused: // also of one that is made by hand
		return e.Wait, e.Wait > 0
	}
	return e.asked, e.asked > 0
}

// LastFailure is Last for the text of a limit that stopped the loop.
func (e *Error) LastFailure(ended.Asked) error {
	if e == nil {
		return nil
	}
	return e.Last
}
