package retry

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// draw is the first delays of a policy whose Rand always gives u, and how often Rand was asked.
func draw(t *testing.T, cfg Config, u float64, n int) (delays []time.Duration, asked int) {
	cfg.Rand = func() float64 { asked++; return u }
	p := mustNew(t, cfg).plan.Load()
	for k := range n {
		own, _ := p.delay(k + 1)
		delays = append(delays, own)
	}
	return delays, asked
}

func TestJitterIsCappedLastAndNeverFedBack(t *testing.T) { // C02
	cfg := Config{Backoff: ExponentialBy(800*time.Millisecond, 1.5), MaxDelay: 1200 * time.Millisecond, Jitter: Proportional(0.5)}
	for u, want := range map[float64][]time.Duration{
		0:    seconds(0.4, 0.6, 0.6),
		0.25: seconds(0.6, 0.9, 0.9),
		0.75: seconds(1.0, 1.2, 1.2),
	} {
		got, asked := draw(t, cfg, u, 3)
		require.Equal(t, want, got)
		require.Equal(t, 3, asked)
	}
	for _, cfg.Jitter = range []Jitter{Proportional(0), Additive(0), None} {
		got, asked := draw(t, cfg, 0.75, 3)
		require.Equal(t, seconds(0.8, 1.2, 1.2), got)
		require.Zero(t, asked, "there is nothing to spread")
	}
}

func TestJitterOfNothingAndOfANanosecond(t *testing.T) { // C02
	for _, j := range []Jitter{Full, Equal, Proportional(1), Additive(1), None} {
		for _, u := range []float64{0, 0.5, math.Nextafter(1, 0)} {
			got, _ := draw(t, Config{Backoff: Exponential(0), Jitter: j}, u, 3)
			require.Equal(t, make([]time.Duration, 3), got)
			got, _ = draw(t, Config{Backoff: Exponential(1), MaxDelay: 1, Jitter: j}, u, 3)
			for _, d := range got {
				require.Contains(t, []time.Duration{0, 1}, d)
			}
		}
	}
	_, asked := draw(t, Config{Backoff: Immediate}, 0.5, 3)
	require.Zero(t, asked)
}

func TestJitterFormulas(t *testing.T) {
	for _, c := range []struct {
		jitter Jitter
		u      float64
		want   time.Duration
	}{
		{Jitter{}, 0.25, 250 * time.Millisecond}, // the zero value is Full
		{Full, 0, 0}, {Full, 0.75, 750 * time.Millisecond},
		{Equal, 0, 500 * time.Millisecond}, {Equal, 0.5, 750 * time.Millisecond},
		{Proportional(1), 0, 0}, {Proportional(1), 0.75, 1500 * time.Millisecond}, {Proportional(0.5), 0.5, time.Second},
		{Additive(time.Minute), 0, time.Second}, {Additive(time.Minute), 0.5, 31 * time.Second},
		{None, 0.5, time.Second},
	} {
		got, _ := draw(t, Config{Backoff: Constant(time.Second), MaxDelay: time.Hour, Jitter: c.jitter}, c.u, 1)
		require.Equal(t, c.want, got[0], "%+v", c)
	}
}

func TestJitterSaturatesAndStaysBelowItsBound(t *testing.T) {
	for _, d := range []time.Duration{1, 2, 3, 1000, math.MaxInt64 - 1, math.MaxInt64} {
		for _, u := range []float64{0, 0x1p-1074, 0.5, 1 - 0x1p-53} {
			require.Less(t, Full.spread(d, u), d)
			require.GreaterOrEqual(t, Full.spread(d, u), time.Duration(0))
			require.GreaterOrEqual(t, Equal.spread(d, u), d/2)
			require.LessOrEqual(t, Equal.spread(d, u), d)
			require.GreaterOrEqual(t, Proportional(1).spread(d, u), time.Duration(0))
			require.GreaterOrEqual(t, Additive(math.MaxInt64).spread(d, u), d)
		}
	}
}

func TestARandOutOfRangeBreaksNothing(t *testing.T) {
	for _, u := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1, 2, 1e300} {
		for _, j := range []Jitter{Full, Equal, Proportional(1), Additive(time.Hour)} {
			got, _ := draw(t, Config{Backoff: Constant(time.Second), MaxDelay: 2 * time.Second, Jitter: j}, u, 1)
			require.GreaterOrEqual(t, got[0], time.Duration(0))
			require.LessOrEqual(t, got[0], 2*time.Second)
		}
		require.GreaterOrEqual(t, unit(u), 0.0)
		require.Less(t, unit(u), 1.0)
	}
}

func TestJitterWithTheDefaultRandIsSpread(t *testing.T) {
	p := mustNew(t, Config{Backoff: Constant(time.Second)}).plan.Load()
	seen := map[time.Duration]bool{}
	for range 100 {
		own, above := p.delay(1)
		require.Less(t, own, time.Second)
		require.Less(t, above, time.Second)
		seen[own] = true
	}
	require.Greater(t, len(seen), 90)
}
