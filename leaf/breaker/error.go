package breaker

import (
	"errors"
	"time"

	"github.com/fairlead/fairlead/internal/check"
)

// ErrOpen matches every refusal of a breaker, open or out of probes.
var ErrOpen = errors.New("breaker: open")

// OpenError is a refusal.
type OpenError struct {
	Name  string        // Config.Name
	State State         // Open, or HalfOpen when all probes are out
	Wait  time.Duration // until a probe may go: the rest of the open time, or of the first lease to end; 0 = unknown
	Cause error         // the failure that tripped it, or nil; data, not unwrapped and not in the message
}

// Error names the breaker, its state and the wait.
func (e *OpenError) Error() string {
	if e == nil {
		return "breaker: nil"
	}
	s := check.Called("breaker", e.Name) + ": " + e.State.String()
	if e.State == HalfOpen {
		s += ", all probes are out"
	}
	if e.Wait > 0 {
		s += ", next probe in " + e.Wait.String()
	}
	return s
}

// Unwrap is ErrOpen.
func (e *OpenError) Unwrap() error {
	if e == nil {
		return nil
	}
	return ErrOpen
}

// Rejected is true.
func (e *OpenError) Rejected() bool { return e != nil }

// RetryAfter is Wait where it is positive.
func (e *OpenError) RetryAfter() (time.Duration, bool) {
	if e == nil || e.Wait <= 0 {
		return 0, false
	}
	return e.Wait, true
}
