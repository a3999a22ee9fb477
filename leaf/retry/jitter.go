package retry

import (
	"fmt"
	"math"
	"time"

	"github.com/fairlead/fairlead/internal/check"
)

// Jitter spreads a delay d; u is uniform in [0, 1). The zero value is Full. Invalid parameters are found by New.
// The result saturates at the largest Duration and is never negative.
type Jitter struct {
	kind jitterKind
	f    float64
	d    time.Duration
}

type jitterKind uint8

const (
	full jitterKind = iota
	equal
	none
	proportional
	additive
)

var (
	Full  = Jitter{}            // uniform in [0, d): d×u
	Equal = Jitter{kind: equal} // uniform in [d/2, d)
	None  = Jitter{kind: none}  // d; Rand is not called
)

// Proportional is d × (1 + f×(2u-1)), f in [0, 1].
func Proportional(f float64) Jitter { return Jitter{kind: proportional, f: f} }

// Additive is uniform in [delay, delay+d), d from 0.
func Additive(d time.Duration) Jitter { return Jitter{kind: additive, d: d} }

// width is how far apart two jittered delays can be.
func (j Jitter) width(d time.Duration) time.Duration {
	switch j.kind {
	case full:
		return d
	case equal:
		return d - d/2
	case proportional:
		return scale(d, 2*j.f)
	case additive:
		return j.d
	}
	return 0
}

// spread is d with jitter; d >= 0, 0 <= u < 1.
func (j Jitter) spread(d time.Duration, u float64) time.Duration {
	switch j.kind {
	case full:
		return scale(d, u)
	case equal:
		return d/2 + scale(d-d/2, u)
	case proportional:
		return scale(d, 1+j.f*(2*u-1))
	case additive:
		return plus(d, scale(j.d, u))
	}
	return d
}

// scale is d×f for d, f >= 0: rounded down and saturating.
func scale(d time.Duration, f float64) time.Duration {
	p := float64(d) * f
	if p >= math.MaxInt64 {
		return longest
	}
	return time.Duration(p)
}

// plus is a+b for a, b >= 0, saturating.
func plus(a, b time.Duration) time.Duration {
	if b > longest-a {
		return longest
	}
	return a + b
}

// unit makes what a caller's Rand gave a number in [0, 1), so that no jitter can break a cap or turn negative.
func unit(u float64) float64 {
	const below1 = 1 - 1.0/(1<<53)
	if !(u > 0) { // NaN too
		return 0
	}
	return min(u, below1)
}

func (j Jitter) check(bad *check.List) {
	switch {
	case j.kind == proportional && !(j.f >= 0 && j.f <= 1):
		bad.Bad("retry", "Jitter", fmt.Sprintf("Proportional(%v)", j.f), "a factor from 0 to 1")
	case j.kind == additive && j.d < 0:
		bad.Bad("retry", "Jitter", fmt.Sprintf("Additive(%v)", j.d), "0 or a positive duration")
	}
}
