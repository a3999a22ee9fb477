package retry

import (
	"math"
	"time"
)

// Backoff gives the delay before retry k, k from 1. Pure, never negative, safe for concurrent use.
// A negative delay counts as 0; one for the first retry is refused by New, which asks for it.
type Backoff func(retry int) time.Duration

const longest = time.Duration(math.MaxInt64)

// invalid is what a Backoff with parameters out of range gives, for New to find.
func invalid(int) time.Duration { return -1 }

// Immediate is the Backoff that is always 0.
func Immediate(retry int) time.Duration { return 0 }

// Constant is always d; a negative d is 0.
func Constant(d time.Duration) Backoff {
	d = max(0, d)
	return func(int) time.Duration { return d }
}

// Exponential is base, 2×base, 4×base, …; it saturates at the largest Duration, never overflows. base from 0 (New finds
// others); a base of 0 is Immediate.
func Exponential(base time.Duration) Backoff {
	if base < 0 {
		return invalid
	}
	return func(retry int) time.Duration {
		shift := max(0, retry-1)
		if shift >= 63 || base > longest>>shift {
			if base == 0 {
				return 0
			}
			return longest
		}
		return base << shift
	}
}

// ExponentialBy is base×factor^(k-1), as Exponential, rounded to the nanosecond; factor from 1, finite (New finds others).
func ExponentialBy(base time.Duration, factor float64) Backoff {
	switch {
	case base < 0 || !(factor >= 1) || math.IsInf(factor, 1): // !(>=) catches NaN as well
		return invalid
	case factor == 1 || base == 0:
		return Constant(base)
	}
	return func(retry int) time.Duration {
		// Step by step, not by math.Pow: rounding is monotonic, so no rung can be below the one before it.
		d := float64(base)
		for range retry - 1 {
			if d *= factor; d >= math.MaxInt64 { // before the conversion, which is undefined beyond
				return longest
			}
		}
		return max(base, time.Duration(math.Round(d)))
	}
}
