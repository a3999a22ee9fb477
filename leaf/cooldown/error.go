package cooldown

import (
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/check"
)

// ErrCooling matches every refusal.
var ErrCooling = errors.New("cooldown: cooling down")

// Error is a refusal.
type Error struct {
	Name string        // Config.Name
	Wait time.Duration // until it admits again; positive
}

// Error names the cooldown and the wait.
func (e *Error) Error() string {
	if e == nil {
		return "cooldown: nil"
	}
	return fmt.Sprintf("%s: cooling down for another %v", check.Called("cooldown", e.Name), e.Wait)
}

// Unwrap is ErrCooling.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return ErrCooling
}

// Rejected is true.
func (e *Error) Rejected() bool { return e != nil }

// RetryAfter is Wait.
func (e *Error) RetryAfter() (time.Duration, bool) {
	if e == nil {
		return 0, false
	}
	return e.Wait, true
}
