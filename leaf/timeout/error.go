package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTimeout matches every [*Error].
var ErrTimeout = errors.New("timeout: limit reached")

// Error says that this limit fired while the caller's context lived. Of several, the outermost expired one is named.
// It matches [ErrTimeout], context.DeadlineExceeded, and whatever Err matches.
type Error struct {
	Name  string        // Config.Name
	Limit time.Duration // Config.Limit, as it was
	Err   error         // what the callback returned; nil in a context's cause
}

// Error names the limit; never a callback's result.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("timeout: limit of %v reached", e.Limit)
	}
	return fmt.Sprintf("timeout %q: limit of %v reached", e.Name, e.Limit)
}

// Unwrap is Err.
func (e *Error) Unwrap() error { return e.Err }

// Is matches ErrTimeout and context.DeadlineExceeded.
func (e *Error) Is(target error) bool {
	return target == ErrTimeout || target == context.DeadlineExceeded
}

// Timeout is true.
func (e *Error) Timeout() bool { return true }

// Rejected is false: the callback ran, whatever it returned.
func (e *Error) Rejected() bool { return false }

// newCause is what context.Cause reports once the limit has fired.
func newCause(name string, limit time.Duration) error { return &Error{Name: name, Limit: limit} }

// around is the error of a limit that fired, around what the callback returned. Where that is an inner limit's, or a
// context's cause, only what it is around is taken: nobody wants to peel two. An inner one that somebody wrapped in an
// error of his own stays in there, behind this one.
func around(name string, limit time.Duration, err error) *Error {
	if inner, ok := err.(*Error); ok && inner != nil {
		err = inner.Err
	}
	return &Error{Name: name, Limit: limit, Err: err}
}
