package ratelimit

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const day = int64(24 * time.Hour)

func TestPolicyKeepsTheIntervalExactlyWhereABucketFits(t *testing.T) {
	for _, c := range []struct {
		rate, per, burst     int64
		interval, den, shift int64
	}{
		{1, 1e9, 1, 1e9, 1, 0},
		{3, 1e9, 3, 1e9, 3, 0},
		{10, 13e9, 1, 13e8, 1, 0},
		{1e6, 1e9, 1e6, 1000, 1, 0},
		{997, 1e9, 997, 1e9, 997, 0},
		{999_983, 1e9, 999_983, 1e9, 999_983, 0},
		{100_000, day, 100_000, 864_000_000, 1, 0},
		{99_991, day, 99_991, (day-1)/8 + 1, 99_991, 3}, // a full bucket does not fit: rounded up
		{1, 876_000 * int64(time.Hour), 100_000, (876_000*int64(time.Hour)-1)>>19 + 1, 1, 19},
	} {
		p, ok := newPolicy(c.rate, c.per, c.burst)
		require.True(t, ok)
		require.Equal(t, c.interval, p.interval, "%+v", c)
		require.Equal(t, c.den, p.den, "%+v", c)
		require.Equal(t, uint(c.shift), p.shift, "%+v", c)
		require.Equal(t, p.interval*c.burst, p.full)
	}
	_, ok := newPolicy(1e6, 1e9, math.MaxInt64)
	require.False(t, ok)
}

// Against rationals: never faster than the rate, slower by less than 10^-9; conversions agree with each other to the
// nanosecond; nothing leaves the 62 bits of a state.
func TestPolicyArithmeticEqualsRationals(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	upTo := func(n int64) int64 { return 1 + rnd.Int64N(1<<min(62, 1+rnd.IntN(63)))%n }
	for i := range 30_000 {
		per := 1000 + upTo(math.MaxInt64-1000)
		rate := upTo(per / 1000)
		burst := upTo(math.MaxInt64)
		p, ok := newPolicy(rate, per, burst)
		unit := new(big.Rat).SetFrac(new(big.Int).Lsh(big.NewInt(1), p.shift), big.NewInt(p.den)) // ns
		exact := big.NewRat(per, rate)
		if !ok {
			require.Greater(t, burst, int64(1<<29), "seed %d, round %d: %d per %d, burst %d refused", seed, i, rate, per, burst)
			continue
		}
		kept := new(big.Rat).Mul(unit, new(big.Rat).SetInt64(p.interval))
		off := new(big.Rat).Quo(new(big.Rat).Sub(kept, exact), exact)
		if off.Sign() < 0 || off.Cmp(big.NewRat(1, 1e9)) >= 0 || p.shift == 0 && off.Sign() != 0 {
			t.Fatalf("seed %d, round %d: %d per %d, burst %d: interval off by %v", seed, i, rate, per, burst, off)
		}
		if p.full > maxFull || p.interval < 1 || p.span < 1 {
			t.Fatalf("seed %d, round %d: %+v", seed, i, p)
		}
		if u := p.units(p.span); u < 0 || u > maxUnits {
			t.Fatalf("seed %d, round %d: the span's units are %d", seed, i, u)
		}
		at := rnd.Int64N(maxUnits)
		ns := p.nanos(0, uint64(at))
		if ns == 0 || ns > p.span {
			continue
		}
		if p.units(ns) < at {
			t.Fatalf("seed %d, round %d: %d units are not over after %d ns", seed, i, at, ns)
		}
		if p.units(ns-1) >= at {
			t.Fatalf("seed %d, round %d: %d units are over before %d ns", seed, i, at, ns)
		}
	}
}

func TestTakeIsGCRA(t *testing.T) {
	p, _ := newPolicy(1, 10, 3) // interval 10, full 30
	for _, c := range []struct {
		name        string
		tat, now, n int64
		next        int64
		ok          bool
	}{
		{"one of a full bucket", 0, 0, 1, 10, true},
		{"all of it", 0, 0, 3, 30, true},
		{"idle time does not count beyond full", 5, 100, 3, 130, true},
		{"one too many", 10, 0, 3, 40, false},
		{"due to the nanosecond", 30, 10, 1, 40, true},
		{"a nanosecond early", 30, 9, 1, 40, false},
		{"none is free", 30, 0, 0, 30, true},
	} {
		next, ok := p.take(c.tat, c.now, c.n)
		require.Equal(t, c.ok, ok, c.name)
		require.Equal(t, c.next, next, c.name)
	}
	require.Equal(t, int64(20), p.give(30, 1))
	require.Equal(t, int64(0), p.give(5, 1), "never before the base")
	require.Equal(t, 1.5, p.tokens(15))
	require.Equal(t, uint64(math.MaxUint64), p.due(1<<60, math.MaxInt64/2), "saturates")
}
