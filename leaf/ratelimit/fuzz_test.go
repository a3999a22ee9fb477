package ratelimit

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"
	"time"
)

// The limiter holds what a bucket of fractions holds that is filled at the rate and counted without rounding, for any rate and
// burst that New takes, and its wait is the first nanosecond that is enough.
func FuzzLimiter(f *testing.F) {
	f.Add(10, int64(time.Second), 5, []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x02\x80\x96\x98\x00\x00\x00\x00\x00"))
	f.Add(7, int64(time.Minute), 1, []byte("some tokens, and some time between them, and so on"))
	f.Add(100_000, int64(24*time.Hour), math.MaxInt32, []byte("the interval is no whole number of nanoseconds"))
	f.Add(1, int64(math.MaxInt64), math.MaxInt, []byte("a token in three centuries"))
	f.Fuzz(func(t *testing.T, rate int, per int64, burst int, steps []byte) {
		clk := &handClock{now: start}
		l, err := New(Config{Rate: rate, Per: time.Duration(per), Burst: burst, Clock: clk})
		if err != nil {
			return // refused: config_test.go holds which
		}
		if per == 0 {
			per = int64(time.Second)
		}
		if burst == 0 {
			burst = max(1, rate)
		}
		b := newShares(int64(rate), per, int64(burst))
		exact := l.bucket.Load().shift == 0
		var gone time.Duration
		for ; len(steps) >= 9; steps = steps[9:] {
			n := int64(steps[0])
			d := time.Duration(binary.LittleEndian.Uint64(steps[1:]) >> (1 + steps[0]%60))
			if d > 100*jump-gone { // a time.Time counts no further from 2026, and a Duration no further than 292 years
				return
			}
			gone += d
			clk.now = clk.now.Add(d)
			b.pass(int64(d))
			if n > int64(burst) {
				continue
			}
			err := l.AllowN(int(n))
			lack := b.lack(n)
			if exact && (err == nil) != (lack == 0) || !exact && err == nil && lack > 0 {
				t.Fatalf("%d per %v, burst %d, after %v: %d tokens: %v; they are there in %d ns", rate, time.Duration(per), burst, gone, n, err, lack)
			}
			if err == nil {
				b.take(n)
			} else if wait := int64(waitOf(t, err)); wait <= 0 || exact && wait != lack {
				t.Fatalf("%d per %v, burst %d, after %v: wait %d for %d tokens, want %d", rate, time.Duration(per), burst, gone, wait, n, lack)
			}
		}
	})
}

// shares is a bucket of whole shares, of which time brings rate per nanosecond and of which a token is per.
type shares struct{ rate, per, full, holds *big.Int }

func newShares(rate, per, burst int64) *shares {
	full := new(big.Int).Mul(big.NewInt(per), big.NewInt(burst))
	return &shares{big.NewInt(rate), big.NewInt(per), full, new(big.Int).Set(full)}
}

func (s *shares) pass(ns int64) {
	s.holds.Add(s.holds, new(big.Int).Mul(s.rate, big.NewInt(ns)))
	if s.holds.Cmp(s.full) > 0 {
		s.holds.Set(s.full)
	}
}

func (s *shares) take(n int64) { s.holds.Sub(s.holds, new(big.Int).Mul(s.per, big.NewInt(n))) }

// lack is the nanoseconds until n tokens are there; as many as there are at most.
func (s *shares) lack(n int64) int64 {
	missing := new(big.Int).Mul(s.per, big.NewInt(n))
	missing.Sub(missing, s.holds)
	if missing.Sign() <= 0 {
		return 0
	}
	missing.Add(missing, new(big.Int).Sub(s.rate, big.NewInt(1)))
	missing.Div(missing, s.rate)
	if !missing.IsInt64() {
		return math.MaxInt64
	}
	return missing.Int64()
}
