// Package ended gives the one error that says how a context ended: it matches both ctx.Err() and context.Cause(ctx).
package ended

import (
	"context"
	"errors"
	"reflect"
)

// Err is nil while ctx is alive. Afterwards it matches (errors.Is, errors.As) ctx.Err() and context.Cause(ctx);
// where the cause adds nothing, it is ctx.Err() itself.
func Err(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if cause == nil || same(cause, err) {
		return err
	}
	return &withCause{err: err, cause: cause}
}

// same compares by identity; a cause of an uncomparable type is never the same (and == would panic).
func same(a, b error) bool {
	switch b {
	case context.Canceled, context.DeadlineExceeded:
		return a == b // one side is comparable, and the types must be equal first: this cannot panic
	}
	return reflect.ValueOf(a).Comparable() && a == b
}

// withCause keeps ctx.Err() first, so that whoever walks the tree meets the standard error before the program's own.
type withCause struct{ err, cause error }

func (e *withCause) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *withCause) Unwrap() []error { return []error{e.err, e.cause} }

// Timeout is what net.Error asks for: a deadline, not a cancellation.
func (e *withCause) Timeout() bool { return e.err == context.DeadlineExceeded }

// Is is errors.Is for a target that comes from outside, a cause or a context's error: errors.Is compares with ==, which panics
// where both hold the same uncomparable value. Such a target is like nothing.
func Is(err, target error) bool {
	return target != nil && reflect.ValueOf(target).Comparable() && errors.Is(err, target)
}

// LastFailure is what a limit that has fired says of err, which it cut: err itself or, where that is the stop of a retry loop,
// what the loop had met last. That the stop is the limit again is no news.
func LastFailure(err error) error {
	if loop, ok := err.(interface{ LastFailure(Asked) error }); ok {
		return loop.LastFailure(Asked{})
	}
	return err
}

// TellRetry tells a failure, or the first in its tree that wants to know, that a retry of it has been paid for: it follows for
// certain, but for the end of the call's time and what a guard says of the next attempt. httpx then begins to read the response
// ahead that gives way. The pipeline tells once per backoff, on the caller's goroutine, while nothing but the retry's
// reservation is held. retry.Do does not: such a failure belongs to the pipeline that made it, and reaches a loop outside of
// that one only when it is over, where there is nothing left to be done.
func TellRetry(failure error) {
	if f, ok := errors.AsType[follower](failure); ok {
		f.RetryFollows(Asked{})
	}
}

// follower wants to know of its retry; it may be told many times, and when it is too late.
type follower interface {
	error
	RetryFollows(Asked)
}

// Asked makes LastFailure, RetryFollows and NestedRefusal methods that only this module can call.
type Asked struct{}
