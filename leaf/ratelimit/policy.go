package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// policy is the arithmetic of one Rate, Per and Burst, in whole units of time.
//
// The interval between two tokens, Per/Rate, need not be a whole number of nanoseconds. Reduced to num/den, it is exactly
// num units of 1/den ns, so units keep every fraction of a token and nothing is ever rounded. Only where a full bucket
// would not fit into 60 bits that way (100,000 per day and its like with a rate that divides badly; a token per century)
// is the unit 2^shift/den ns, and the interval rounded up to whole units: never faster than the rate, and slower by less
// than one part in 10^9.
type policy struct {
	den      int64  // a unit is 2^shift/den ns; 0 = a quota: time does not pass
	shift    uint   //
	interval int64  // units in which one token comes
	full     int64  // units in which all come: Burst × interval
	span     uint64 // nanoseconds that surely fit: their units are at most 2^61
	horizon  int64  // units ahead that neither a policy nor a small step of the clock explains
}

const (
	maxFull     = 1 << 60   // a bucket's full, so that 2^61 units of time and one bucket fit into a state's 62 bits
	maxUnits    = 1 << 61   // how far time may run before a new base is needed
	maxQuota    = 1<<62 - 1 // the state's 62 bits
	minInterval = 1 << 30   // rounding up an interval of at least so many units costs less than one part in 10^9

	// jump is the step of a clock that is no step but another time: a bubble of testing/synctest starts in 2000. Less
	// than that back is a step, in which nothing is minted.
	jump = 365 * 24 * time.Hour
)

// newPolicy is for rate, per and burst of 1 or more, per/rate of 1 µs or more; ok is false where burst is too large.
func newPolicy(rate, per, burst int64) (p policy, ok bool) {
	g := gcd(per, rate)
	num := per / g
	p.den, p.interval = rate/g, num
	for {
		hi, full := bits.Mul64(uint64(p.interval), uint64(burst))
		if hi == 0 && full <= maxFull {
			p.full = int64(full)
			break
		}
		p.shift++
		p.interval = (num-1)>>p.shift + 1
		if p.interval < minInterval {
			return p, false
		}
	}
	p.span = min(p.nanos(0, maxUnits)-1, math.MaxInt64)
	p.horizon = math.MaxInt64
	if year := p.units(uint64(jump)); year <= maxUnits {
		p.horizon = p.full + year
	}
	return p, true
}

// quotaPolicy counts tokens where the other counts units of time.
func quotaPolicy(n int64) policy { return policy{interval: 1, full: n, horizon: math.MaxInt64} }

func (p *policy) quota() bool { return p.den == 0 }

// units is the whole units in ns; where they are more than a state can hold, they are as many as it can.
func (p *policy) units(ns uint64) int64 {
	hi, lo := bits.Mul64(ns, uint64(p.den))
	if hi>>p.shift != 0 {
		return maxUnits + maxFull
	}
	return int64(min(hi<<(64-p.shift)|lo>>p.shift, maxUnits+maxFull))
}

// nanos is the first nanosecond by which the units (hi, lo) are over; math.MaxUint64 where it lies beyond.
func (p *policy) nanos(hi, lo uint64) uint64 {
	over := hi >> (64 - p.shift)
	hi, lo = hi<<p.shift|lo>>(64-p.shift), lo<<p.shift
	if over != 0 || hi >= uint64(p.den) {
		return math.MaxUint64
	}
	ns, rest := bits.Div64(hi, lo, uint64(p.den))
	if rest > 0 && ns < math.MaxUint64 {
		ns++
	}
	return ns
}

// take is the state after n tokens, 0 to Burst, were taken at the instant now; ok is false where they are not there.
// The state, tat, is GCRA's theoretical arrival time: the instant at which the bucket will be full again; past = full.
// Source of the formula: ITU-T I.371, generic cell rate algorithm, virtual scheduling.
func (p *policy) take(tat, now, n int64) (next int64, ok bool) {
	next = max(tat, now) + n*p.interval
	return next, next-now <= p.full
}

// give is the state after n tokens came back. The state never falls below the base, the earliest instant there is, where
// the bucket is full already.
func (p *policy) give(tat, n int64) int64 { return max(0, tat-n*p.interval) }

// due is the nanosecond, counted from the base, from which on n tokens can be taken; n may exceed Burst where it includes
// those who wait in front. It is for tokens that are not there yet.
func (p *policy) due(tat, n int64) uint64 {
	if p.quota() {
		return math.MaxUint64
	}
	hi, lo := bits.Mul64(uint64(n), uint64(p.interval))
	if over := tat - p.full; over >= 0 {
		var carry uint64
		lo, carry = bits.Add64(lo, uint64(over), 0)
		hi += carry
	} else {
		var borrow uint64
		lo, borrow = bits.Sub64(lo, uint64(-over), 0)
		hi -= borrow
		if int64(hi) < 0 {
			return 0
		}
	}
	return p.nanos(hi, lo)
}

// balance is the units that the bucket holds, of full when it is full. A state beyond the horizon is no state: full.
func (p *policy) balance(tat, now int64) int64 {
	ahead := max(0, tat-now)
	if ahead > p.horizon {
		ahead = 0
	}
	return max(0, p.full-ahead)
}

// tokens is a balance for display.
func (p *policy) tokens(balance int64) float64 {
	return float64(balance/p.interval) + float64(balance%p.interval)/float64(p.interval)
}

// converted is a balance of p in the units of q: the same tokens, the last fraction of a unit dropped, at most q's Burst.
func (p *policy) converted(balance int64, q *policy) int64 {
	whole, rest := balance/p.interval, balance%p.interval
	if whole >= q.full/q.interval {
		return q.full
	}
	hi, lo := bits.Mul64(uint64(rest), uint64(q.interval))
	part, _ := bits.Div64(hi, lo, uint64(p.interval))
	return whole*q.interval + int64(part)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
