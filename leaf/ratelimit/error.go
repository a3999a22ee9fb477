package ratelimit

import (
	"errors"
	"fmt"
	"time"
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
	if e.Wait < 0 {
		return fmt.Sprintf("ratelimit %q: not enough tokens left, never refilled", e.Name)
	}
	return fmt.Sprintf("ratelimit %q: limited, enough tokens in %v", e.Name, e.Wait)
}

// Unwrap is ErrLimited.
func (e *LimitedError) Unwrap() error { return ErrLimited }

// Rejected is true.
func (e *LimitedError) Rejected() bool { return true }

// RetryAfter is Wait; ok is false where it is negative.
func (e *LimitedError) RetryAfter() (time.Duration, bool) { return max(0, e.Wait), e.Wait >= 0 }
