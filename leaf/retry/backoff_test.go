package retry

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ladder is the delay before retry k as a loop takes it, without jitter.
func ladder(t *testing.T, cfg Config) func(k int) time.Duration {
	cfg.Jitter = None
	p := mustNew(t, cfg).plan.Load()
	return func(k int) time.Duration {
		own, above := p.delay(k)
		require.Zero(t, above)
		return own
	}
}

func mustNew(t *testing.T, cfg Config) *Retry {
	t.Helper()
	r, err := New(cfg)
	require.NoError(t, err)
	return r
}

func TestBackoffNeverOverflowsItsCap(t *testing.T) { // C01 (a)
	at := ladder(t, Config{Backoff: Exponential(time.Second), MaxDelay: 30 * time.Second})
	for k, want := range seconds(1, 2, 4, 8, 16, 30) {
		require.Equal(t, want, at(k+1))
	}
	for k := 6; k <= 5000; k++ {
		require.Equal(t, 30*time.Second, at(k), k)
	}
}

func TestBackoffWithoutCapSaturates(t *testing.T) { // C01 (b)
	for name, at := range map[string]func(int) time.Duration{
		"Exponential":    Exponential(time.Second),
		"ExponentialBy2": ExponentialBy(time.Second, 2),
		"in a policy":    ladder(t, Config{Backoff: Exponential(time.Second), MaxDelay: math.MaxInt64}),
	} {
		require.Equal(t, 8_589_934_592*time.Second, at(34), name)
		last := time.Duration(0)
		for k := 1; k <= 5000; k++ {
			d := at(k)
			require.Positive(t, d, name)
			require.GreaterOrEqual(t, d, last, name)
			last = d
			if k >= 35 {
				require.Equal(t, time.Duration(9_223_372_036_854_775_807), d, name)
			}
		}
	}
}

func TestBackoffByAFraction(t *testing.T) { // C01 (c)
	at := ladder(t, Config{Backoff: ExponentialBy(time.Second, 1.5), MaxDelay: 30 * time.Second})
	for k, want := range seconds(1, 1.5, 2.25, 3.375, 5.0625, 7.59375, 11.390625, 17.0859375, 25.62890625) {
		require.Equal(t, want, at(k+1))
	}
	for k := 10; k <= 5000; k++ {
		require.Equal(t, 30*time.Second, at(k))
	}
}

func TestBackoffNeverDecreasesWhateverTheFactor(t *testing.T) {
	for _, factor := range []float64{1, math.Nextafter(1, 2), 1.0000001, 1.1, 1.15, math.Phi, 3, 1e18, math.MaxFloat64} {
		for _, base := range []time.Duration{0, 1, 7, time.Second, 1<<53 + 1, math.MaxInt64} {
			last, by := time.Duration(0), ExponentialBy(base, factor)
			require.Equal(t, base, by(1), "the first step is base")
			for k := 1; k < 200; k++ {
				d := by(k)
				require.GreaterOrEqual(t, d, last, "%v %v %d", base, factor, k)
				last = d
			}
		}
	}
	require.Equal(t, 115*time.Millisecond, ExponentialBy(100*time.Millisecond, 1.15)(2), "rounded, not cut")
}

func TestBackoffsOfEveryKind(t *testing.T) {
	for k := range 100 {
		require.Zero(t, Immediate(k))
		require.Equal(t, time.Minute, Constant(time.Minute)(k))
		require.Zero(t, Constant(-time.Minute)(k), "a negative d is 0")
		require.Zero(t, Exponential(0)(k))
		require.Zero(t, ExponentialBy(0, 3)(k))
		require.Equal(t, time.Minute, ExponentialBy(time.Minute, 1)(k))
	}
	require.Equal(t, time.Second, Exponential(time.Second)(0), "k below 1 is 1")
	require.Equal(t, time.Second, ExponentialBy(time.Second, 3)(-5))
}

func TestInvalidBackoffsAreFoundByNew(t *testing.T) {
	for _, b := range []Backoff{
		Exponential(-1), ExponentialBy(-1, 2), ExponentialBy(1, 0.5), ExponentialBy(1, 0), ExponentialBy(1, -2),
		ExponentialBy(1, math.NaN()), ExponentialBy(1, math.Inf(1)), ExponentialBy(1, math.Inf(-1)),
		func(int) time.Duration { return -time.Second },
	} {
		r, err := New(Config{Backoff: b})
		require.Nil(t, r)
		require.ErrorContains(t, err, "retry: Backoff is -")
	}
	_, err := New(Config{Backoff: func(int) time.Duration { panic("no table") }})
	require.ErrorContains(t, err, "no table", "a panic is an error of New")
}

func TestANegativeLaterDelayCountsAsZero(t *testing.T) {
	at := ladder(t, Config{Backoff: func(k int) time.Duration { return time.Duration(2-k) * time.Second }})
	require.Equal(t, time.Second, at(1))
	require.Zero(t, at(5))
}

func TestTheDefaultLadder(t *testing.T) {
	at := ladder(t, Config{})
	require.Equal(t, 100*time.Millisecond, at(1))
	require.Equal(t, 200*time.Millisecond, at(2))
	require.Equal(t, 20*time.Second, at(9))
	require.Equal(t, 20*time.Second, at(5000))
}
