// Package refusal knows errors by two methods alone, Rejected() bool and RetryAfter() (time.Duration, bool), and a pipeline's own by
// a third. Package rejection is its public face; guards use it to judge without importing anything that knows guards.
package refusal

import (
	"errors"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
)

// Plain says that err is a single error without a word of its own on any of this: no tree to walk, no refusal, no wait asked
// for. Most failures are, and one look at their type spares the walks.
func Plain(err error) bool {
	switch err.(type) {
	case interface{ Unwrap() error },
		interface{ Unwrap() []error },
		interface{ As(any) bool },
		interface{ Rejected() bool },
		interface {
			RetryAfter() (time.Duration, bool)
		}:
		return false
	}
	return true
}

// Is says whether err is a refusal. The outermost error with Rejected() bool decides; without an opinion of its own, an
// error that joins several is a refusal only if every branch is (nil branches do not count; no branch is no refusal).
func Is(err error) bool {
	for err != nil {
		if r, ok := err.(interface{ Rejected() bool }); ok {
			return r.Rejected()
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			return all(u.Unwrap())
		default:
			return false
		}
	}
	return false
}

func all(branches []error) bool {
	seen := false
	for _, b := range branches {
		if b == nil {
			continue
		}
		if !Is(b) {
			return false
		}
		seen = true
	}
	return seen
}

// Nested says that a refusal further in came out of a callback that ran, as a pipeline that was called inside tells it
// (pipeline.RanError). err is no refusal itself, for its call did run; it is no more retried than the refusal, and says no more of
// what was called. A Plain err is none.
func Nested(err error) bool {
	if Plain(err) {
		return false
	}
	_, ok := errors.AsType[nested](err)
	return ok
}

type nested interface {
	error
	NestedRefusal(ended.Asked)
}

// RetryAfter is the outermost hint in err's tree; among siblings the largest. A false or negative answer is no hint, and
// what the error wraps is asked instead.
func RetryAfter(err error) (time.Duration, bool) { return hint(err, false) }

// LowerBound is RetryAfter for whoever waits: it passes over the hints of errors whose UpperBound() is true, as that of a
// full bulkhead, which say by when at the latest, not before when it is useless.
func LowerBound(err error) (time.Duration, bool) { return hint(err, true) }

func hint(err error, lower bool) (time.Duration, bool) {
	for err != nil {
		if h, ok := err.(interface {
			RetryAfter() (time.Duration, bool)
		}); ok && !(lower && upperBound(err)) {
			if wait, ok := h.RetryAfter(); ok && wait >= 0 {
				return wait, true
			}
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			return largest(u.Unwrap(), lower)
		default:
			return 0, false
		}
	}
	return 0, false
}

func upperBound(err error) bool {
	u, ok := err.(interface{ UpperBound() bool })
	return ok && u.UpperBound()
}

func largest(branches []error, lower bool) (wait time.Duration, found bool) {
	for _, b := range branches {
		if w, ok := hint(b, lower); ok && (!found || w > wait) {
			wait, found = w, true
		}
	}
	return wait, found
}
