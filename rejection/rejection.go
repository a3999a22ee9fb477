package rejection

import (
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
)

// Is says whether err is a refusal: the callback did not run. The outermost error with Rejected() bool decides, so that
// a *retry.Error or a *pipeline.RanError overrules what it wraps. Without an opinion of its own, an error that
// joins several (Unwrap() []error) is a rejection only if every branch is. nil and everything else is none.
func Is(err error) bool { return refusal.Is(err) }

// RetryAfter is the outermost hint in err's tree; among siblings the largest. An error whose RetryAfter() says false, or
// a negative wait, has no hint of its own, and what it wraps is asked. Without a hint it is (0, false).
// It also finds hints of errors that are no rejection.
func RetryAfter(err error) (time.Duration, bool) { return refusal.RetryAfter(err) }
