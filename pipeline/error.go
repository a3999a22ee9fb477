package pipeline

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/refusal"
)

// ErrPanicked is the Err of attempt_finished and call_finished when the callback panicked or called runtime.Goexit. No call
// returns it: the panic goes on unwinding.
var ErrPanicked = errors.New("pipeline: the callback panicked or called runtime.Goexit")

// RanError says that fn ran and itself returned somebody's rejection: to this call's caller it is none, and OnRejected
// is not called, since re-queueing could do the work twice.
type RanError struct {
	Err error // what fn returned
}

// Error says that it ran, and Err.
func (e *RanError) Error() string {
	if e == nil {
		return "pipeline: nil"
	}
	return fmt.Sprintf("pipeline: the callback ran, and returned: %v", e.Err)
}

// Unwrap is Err: errors.Is, errors.As and rejection.RetryAfter see through it.
func (e *RanError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Rejected is false.
func (e *RanError) Rejected() bool { return false }

// NestedRefusal marks it for guards and retries that are used alone: it is no more retried than the refusal, and says no more of
// what was called.
func (e *RanError) NestedRefusal(ended.Asked) {}

// mapped is what OnRejected made of a refusal. The original stays reachable, and since among siblings the largest hint
// counts, a mapper can lengthen its wait but never hide it.
type mapped struct {
	err, original error
	rejected      bool
}

func (e *mapped) Error() string   { return e.err.Error() }
func (e *mapped) Unwrap() []error { return []error{e.err, e.original} }
func (e *mapped) Rejected() bool  { return e.rejected }

// mapRefusal asks the mapper. The original itself comes back unchanged. What the mapper made is returned as it is where it
// keeps all that must stay, else together with the original.
func mapRefusal(mapper func(error) error, original error) error {
	err := mapper(original)
	if check.Nil(err) || same(err, original) {
		return original
	}
	rejected := true
	if own, ok := err.(interface{ Rejected() bool }); ok && !same(err, original) {
		rejected = own.Rejected() // the mapper's own word, not that of what it wrapped
	}
	if reaches(err, original) && refusal.Is(err) == rejected && keepsWait(err, original) {
		return err
	}
	return &mapped{err: err, original: original, rejected: rejected}
}

func keepsWait(err, original error) bool {
	want, ok := refusal.RetryAfter(original)
	if !ok {
		return true
	}
	got, ok := refusal.RetryAfter(err)
	return ok && got >= want
}

// same is identity, and deep equality for what == would panic at.
func same(a, b error) bool {
	switch {
	case reflect.TypeOf(a) != reflect.TypeOf(b):
		return false
	case reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable():
		return a == b
	default:
		return reflect.DeepEqual(a, b)
	}
}

// reaches says that target is in err's tree, by identity alone: an Is method says what errors are like, not where they are.
func reaches(err, target error) bool {
	for err != nil {
		if same(err, target) {
			return true
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, branch := range u.Unwrap() {
				if reaches(branch, target) {
					return true
				}
			}
			return false
		default:
			return false
		}
	}
	return false
}
