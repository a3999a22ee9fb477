package redislimit

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/stretchr/testify/require"
)

// oracle is GCRA on rational numbers, in µs.
type oracle struct{ interval, full, tat *big.Rat }

func newOracle(interval *big.Rat, burst int) *oracle {
	full := new(big.Rat).Mul(interval, big.NewRat(int64(burst), 1))
	return &oracle{interval, full, new(big.Rat)}
}

// ask takes n tokens at now, or says in how many whole µs they are there.
func (o *oracle) ask(now int64, n int) (ok bool, wait int64) {
	at := new(big.Rat).SetInt64(now)
	next := new(big.Rat).Set(at)
	if o.tat.Cmp(at) > 0 {
		next.Set(o.tat)
	}
	next.Add(next, new(big.Rat).Mul(o.interval, big.NewRat(int64(n), 1)))
	late := new(big.Rat).Sub(new(big.Rat).Sub(next, at), o.full)
	if late.Sign() <= 0 {
		o.tat = next
		return true, 0
	}
	up := new(big.Int).Add(late.Num(), new(big.Int).Sub(late.Denom(), big.NewInt(1)))
	return false, up.Quo(up, late.Denom()).Int64()
}

// trueInterval is Per/Rate in µs; rounded is the next 1/16 µs.
func trueInterval(rate int, per time.Duration) (exact, rounded *big.Rat) {
	exact = big.NewRat(int64(per), int64(rate)*1000)
	units := new(big.Rat).Mul(exact, big.NewRat(16, 1))
	up := new(big.Int).Add(units.Num(), new(big.Int).Sub(units.Denom(), big.NewInt(1)))
	up.Quo(up, units.Denom())
	return exact, new(big.Rat).SetFrac(up, big.NewInt(16))
}

// Test 1: the limiter equals a rational oracle, in every decision and every wait, over awkward rates; and what it admits
// never exceeds what the rate itself, without any rounding, would.
func TestLimiterEqualsTheOracle(t *testing.T) {
	const decisions = 4000
	rates := []struct {
		rate  int
		per   time.Duration
		burst int
	}{
		{997, time.Second, 50}, {7, time.Minute, 3}, {1_000_000, time.Second, 1000}, {999_999, time.Second, 17},
		{3, time.Second, 1}, {1, 10 * time.Second, 5}, {99_991, 24 * time.Hour, 400}, {13, 17 * time.Millisecond, 100_000},
		{1, 10 * time.Minute, 2}, {123_457, 7 * time.Second, 12_345}, {11, 12_345_678 * time.Nanosecond, 5},
	}
	for i, r := range rates {
		t.Run(fmt.Sprintf("%d per %v, burst %d", r.rate, r.per, r.burst), func(t *testing.T) {
			v := newVirtual()
			l := on(t).frozen(v).limiter(ratelimit.Config{Rate: r.rate, Per: r.per, Burst: r.burst})
			exact, rounded := trueInterval(r.rate, r.per)
			model, ideal := newOracle(rounded, r.burst), newOracle(exact, r.burst)
			interval := max(1, int64(r.per)/int64(r.rate)/1000)
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			admitted, lastWait := 0, int64(1)
			// Beyond 2035 a unit is no longer exact in a Lua number; the slowest rate of the table comes close to it.
			horizon := time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
			for k := range decisions {
				require.Less(t, v.µs.Load(), horizon)
				switch rnd.IntN(8) {
				case 0: // the same instant
				case 1:
					v.µs.Add(lastWait) // the very instant that was promised
				case 2:
					v.µs.Add(max(0, lastWait-1)) // one too early
				case 3:
					v.µs.Add(rnd.Int64N(interval*int64(r.burst)*2 + 1)) // idle
				default:
					v.µs.Add(rnd.Int64N(2*interval + 1))
				}
				n := 1 + rnd.IntN(min(r.burst, 1+rnd.IntN(r.burst)))
				now := v.µs.Load()
				ok, wait := model.ask(now, n)
				err := l.AllowN(bg, n)
				require.Equal(t, ok, err == nil, "decision %d: %d at %d µs", k, n, now)
				if ok {
					admitted++
					allowed, late := ideal.ask(now, n)
					require.True(t, allowed, "decision %d: %d at %d µs is %d µs too early for the rate", k, n, now, late)
					continue
				}
				require.Equal(t, time.Duration(wait)*time.Microsecond, waitOf(t, err), "decision %d: %d at %d µs", k, n, now)
				lastWait = wait
			}
			require.Greater(t, admitted, decisions/10)
			require.Less(t, admitted, decisions*9/10)
		})
	}
}
