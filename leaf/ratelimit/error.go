package ratelimit

import (
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/check"
)

// ErrLimited matches every refusal.
var ErrLimited = errors.New("ratelimit: limited")

// LimitedError is a refusal.
type LimitedError struct {
	Name string        // Config.Name
	Wait time.Duration // rounded up to the first nanosecond that is enough; < 0 = never
}

// never is the Wait of what no time will bring.
const never time.Duration = -1

// Error names the limiter and the wait.
func (e *LimitedError) Error() string {
	if e == nil {
		return "ratelimit: nil"
	}
	if e.Wait < 0 {
		return check.Called("ratelimit", e.Name) + ": not enough tokens left, never refilled"
	}
	return fmt.Sprintf("%s: limited, enough tokens in %v", check.Called("ratelimit", e.Name), e.Wait)
}

// Unwrap is ErrLimited.
func (e *LimitedError) Unwrap() error {
	if e == nil {
		return nil
	}
	return ErrLimited
}

// Rejected is true.
func (e *LimitedError) Rejected() bool { return e != nil }

// RetryAfter is Wait; ok is false where it is negative.
func (e *LimitedError) RetryAfter() (time.Duration, bool) {
	if e == nil || e.Wait < 0 {
		return 0, false
	}
	return e.Wait, true
}
