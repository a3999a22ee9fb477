package httpx

import (
	"errors"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// limited says that a rate limit refused: one of package ratelimit, wherever it stands, or one of the program's own in the layer
// for it. A guard that is broken or whose store is out, and a guard of another kind in that layer, refused for another reason.
func limited(err error, layer string) bool {
	if _, outage := errors.AsType[*leaf.StoreError](err); outage {
		return false
	}
	return errors.Is(err, ratelimit.ErrLimited) || layer == "ratelimit" && refusing(err) && !another(err)
}

// another says that err is of a guard that is no limit.
func another(err error) bool {
	return errors.Is(err, breaker.ErrOpen) || errors.Is(err, bulkhead.ErrFull) || errors.Is(err, cooldown.ErrCooling)
}

// refusing says that something in err's tree says of itself that it is a refusal. rejection.Is would not do: of an error that
// OnRejected mapped it tells the engine's word, which is the same where the guard was broken.
func refusing(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, branch := range many.Unwrap() {
			if refusing(branch) {
				return true
			}
		}
		return false
	}
	if r, ok := err.(interface{ Rejected() bool }); ok && r.Rejected() {
		return true
	}
	inner := errors.Unwrap(err)
	return inner != nil && refusing(inner)
}
