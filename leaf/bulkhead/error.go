package bulkhead

import (
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/check"
)

// ErrFull matches every refusal.
var ErrFull = errors.New("bulkhead: full")

// FullError is a refusal: no slot, and no queue place or no more time to wait.
type FullError struct {
	Name   string        // Config.Name
	Max    int           // Config.MaxConcurrent, as it was
	Waited time.Duration // how long the call waited in vain; 0 = refused at once
	Wait   time.Duration // a shared bulkhead's lease: an upper bound, for headers only; 0 = unknown, as for every local one
}

// Error names the bulkhead, the limit and the time waited.
func (e *FullError) Error() string {
	if e == nil {
		return "bulkhead: nil"
	}
	s := fmt.Sprintf("%s: full (%d at once)", check.Called("bulkhead", e.Name), e.Max)
	if e.Waited > 0 {
		s += ", waited " + e.Waited.String()
	}
	return s
}

// Unwrap is ErrFull.
func (e *FullError) Unwrap() error {
	if e == nil {
		return nil
	}
	return ErrFull
}

// Rejected is true.
func (e *FullError) Rejected() bool { return e != nil }

// RetryAfter is Wait where it is positive. It is for headers: a retry never takes it as a lower bound.
func (e *FullError) RetryAfter() (time.Duration, bool) {
	if e == nil || e.Wait <= 0 {
		return 0, false
	}
	return e.Wait, true
}

// UpperBound is true: what RetryAfter tells is the longest that it can take, so it may stand in a header, but a retry that
// took it for the least it has to wait would wait for nothing.
func (e *FullError) UpperBound() bool { return true }
