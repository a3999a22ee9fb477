package rejection

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Seconds is d in whole seconds, rounded up, at least 1 (Retry-After: 0 would invite the client back at once).
// It saturates where an int has 32 bits.
func Seconds(d time.Duration) int {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return int(min(max(s, 1), math.MaxInt))
}

// SetHeader sets Retry-After to [Seconds] of err's hint and says whether there was one; without a hint h is untouched.
func SetHeader(h http.Header, err error) bool {
	wait, ok := RetryAfter(err)
	if ok {
		h.Set("Retry-After", strconv.Itoa(Seconds(wait)))
	}
	return ok
}

// Status is 503 for any refusal ([Is]), a rate limit's included; 504 for a timeout or an expired budget (the error has
// Timeout() true or matches context.DeadlineExceeded); 0 for nil and everything else. As with Is, the outermost error
// with Timeout() decides about those that it wraps; of several branches one is enough.
// 429 is for httpx.Middleware's own limiter alone: the limit was not the client's.
func Status(err error) int {
	switch {
	case Is(err):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded) || timedOut(err):
		return http.StatusGatewayTimeout
	}
	return 0
}

func timedOut(err error) bool {
	for err != nil {
		if t, ok := err.(interface{ Timeout() bool }); ok {
			return t.Timeout()
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, branch := range u.Unwrap() {
				if timedOut(branch) {
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
