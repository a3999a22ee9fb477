package cooldown

import (
	"errors"
	"fmt"
	"time"
)

// ErrCooling matches every refusal.
var ErrCooling = errors.New("cooldown: cooling down")

// Error is a refusal.
type Error struct {
	Name string        // Config.Name
	Wait time.Duration // until it opens; positive
}

// Error names the cooldown and the wait.
func (e *Error) Error() string {
	return fmt.Sprintf("cooldown %q: cooling down for another %v", e.Name, e.Wait)
}

// Unwrap is ErrCooling.
func (e *Error) Unwrap() error { return ErrCooling }

// Rejected is true.
func (e *Error) Rejected() bool { return true }

// RetryAfter is Wait.
func (e *Error) RetryAfter() (time.Duration, bool) { return e.Wait, true }
