package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/ended"
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

// Error names the limit and the last failure: what Err says, or what a retry loop around the callback had met last. That a
// context is over is no news beside a limit, and is left out.
func (e *Error) Error() string {
	if e == nil {
		return "timeout: nil"
	}
	s := fmt.Sprintf("%s: limit of %v reached", check.Called("timeout", e.Name), e.Limit)
	if last := ended.LastFailure(e.Err); last != nil && last != context.DeadlineExceeded {
		s += fmt.Sprintf("; last failure: %v", last)
	}
	return s
}

// Unwrap is Err.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Is matches ErrTimeout and context.DeadlineExceeded.
func (e *Error) Is(target error) bool {
	return e != nil && (target == ErrTimeout || target == context.DeadlineExceeded)
}

// Timeout is true.
func (e *Error) Timeout() bool { return e != nil }

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
