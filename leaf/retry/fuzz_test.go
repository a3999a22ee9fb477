package retry

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever its parameters: a delay is never negative and never above the cap, the ladder never falls, and what is added to a
// wait that was asked for is at most one step.
func FuzzDelay(f *testing.F) {
	f.Add(int64(100*time.Millisecond), 2.0, 5000, uint8(0), 0.5, 0.5, int64(20*time.Second))
	f.Add(int64(math.MaxInt64), 1.0000001, 64, uint8(3), 1.0, math.NaN(), int64(math.MaxInt64))
	f.Add(int64(1), math.MaxFloat64, 2, uint8(4), -1.0, math.Inf(1), int64(1))
	f.Add(int64(0), 1.5, math.MaxInt, uint8(1), 0.0, -0.5, int64(0))
	f.Fuzz(func(t *testing.T, base int64, factor float64, k int, kind uint8, share, u float64, most int64) {
		k = int(uint(k) % (1 << 14)) // the ladder of a factor is climbed step by step
		cfg := Config{
			Backoff: ExponentialBy(time.Duration(base), factor), MaxDelay: time.Duration(most), Rand: func() float64 { return u },
			Jitter: []Jitter{Full, Equal, None, Proportional(share), Additive(time.Duration(share * 1e9))}[kind%5],
		}
		if factor == 2 {
			cfg.Backoff = Exponential(time.Duration(base))
		}
		r, err := New(cfg)
		if err != nil {
			return // refused: config_test.go holds which
		}
		p := r.plan.Load()
		own, above := p.delay(k)
		step := min(p.Backoff(k), p.MaxDelay)
		if own < 0 || own > p.MaxDelay || above < 0 || above > step {
			t.Fatalf("retry %d of %v × %v, %v, u %v, cap %v: %v, %v above a wait", k, base, factor, cfg.Jitter, u, p.MaxDelay, own, above)
		}
		if k > 0 && p.Backoff(k) < p.Backoff(k-1) {
			t.Fatalf("the ladder %v × %v falls from %v to %v at %d", base, factor, p.Backoff(k-1), p.Backoff(k), k)
		}
	})
}

// The loop does what the naive model says, whatever happens in whichever order.
func FuzzLoop(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a long enough seed for a few tries of a call, one after the other, until the attempts are used up"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		synctest.Test(t, func(t *testing.T) {
			c, tries := randomModel(rand.New(newTape(ops)))
			c.call(t, tries)
		})
	})
}

// tape is a random source that plays a fuzzer's input, and goes on at random, but always the same way, when it is over.
type tape struct {
	rest []byte
	then rand.Source
}

func newTape(input []byte) *tape {
	return &tape{rest: input, then: rand.NewPCG(uint64(len(input)), 0)}
}

func (t *tape) Uint64() uint64 {
	if len(t.rest) == 0 {
		return t.then.Uint64()
	}
	var next [8]byte
	t.rest = t.rest[copy(next[:], t.rest):]
	return binary.LittleEndian.Uint64(next[:])
}
