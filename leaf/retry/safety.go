package retry

import "time"

// Safety declares, per call, that an operation may be repeated. It is never carried by a context: it would leak into nested
// calls. The zero Safety is Unsafe. A value; it costs no allocation.
type Safety struct {
	name     string // what was declared: an operation, or a key
	validFor time.Duration
}

// Unsafe declares nothing; the default. A policy that is not Strict retries all the same.
var Unsafe Safety

// ReadOnly declares the named operation as one that changes nothing, for validFor from the call's beginning: no retry
// starts after it. math.MaxInt64 is for ever, and costs no reading of the clock. An empty name or validFor <= 0 declares nothing.
func ReadOnly(name string, validFor time.Duration) Safety { return declare(name, validFor) }

// Idempotent declares that the other side knows repetitions by key, for validFor from the call's beginning, as ReadOnly.
func Idempotent(key string, validFor time.Duration) Safety { return declare(key, validFor) }

func declare(name string, validFor time.Duration) Safety {
	if name == "" || validFor <= 0 {
		return Safety{}
	}
	return Safety{name: name, validFor: validFor}
}

func (s Safety) declared() bool { return s.validFor > 0 }
