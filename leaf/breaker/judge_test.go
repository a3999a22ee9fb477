package breaker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

type rejection struct{}

func (rejection) Error() string  { return "rejected" }
func (rejection) Rejected() bool { return true }

func TestJudging(t *testing.T) {
	const ms = time.Millisecond
	never := func(error) bool { return false }
	always := func(error) bool { return true }
	mustNotAsk := func(error) bool { panic("IsFailure was asked") }
	slowAt := Config{SlowCall: 100 * ms}
	rejected := fmt.Errorf("nested: %w", rejection{})

	for _, c := range []struct {
		name string
		cfg  Config
		o    leaf.Outcome
		want result
	}{
		{"success", Config{}, success, succeeded},
		{"error", Config{}, failure, failed},
		{"error is fine", Config{IsFailure: never}, failure, succeeded},
		{"success is none", Config{IsFailure: always}, success, failed},
		{"error is ignored", Config{Ignore: always, IsFailure: mustNotAsk, SlowCall: 1}, leaf.Outcome{Err: errDown, Took: time.Hour}, neutral},
		{"error is not ignored", Config{Ignore: never}, failure, failed},
		{"a success is not ignored", Config{Ignore: mustNotAsk}, success, succeeded},
		{"timed out, whatever is ignored", Config{Ignore: mustNotAsk}, leaf.Outcome{Verdict: leaf.TimedOut, Err: errDown}, failed},
		{"expired, blamed, but ignored", Config{Ignore: always}, expired(time.Hour, time.Hour), neutral},
		{"expired, not blamed, slow", Config{Ignore: always, SlowCall: time.Millisecond}, expired(2*time.Millisecond, time.Hour), slow},
		{"expired, blamed, but ignored, slow", Config{Ignore: always, SlowCall: time.Millisecond}, expired(time.Hour, time.Hour), slow},
		{"not run", Config{IsFailure: mustNotAsk}, notRun, neutral},
		{"not run, with the refusal", Config{IsFailure: mustNotAsk}, leaf.Outcome{Verdict: leaf.NotRun, Err: errDown, Took: time.Hour}, neutral},
		{"ignored", Config{IsFailure: mustNotAsk, SlowCall: 1}, leaf.Outcome{Verdict: leaf.Ignored, Err: errDown, Took: time.Hour}, neutral},
		{"a rejection", Config{IsFailure: mustNotAsk}, leaf.Outcome{Err: rejected}, neutral},
		{"a rejection at the timeout", Config{}, leaf.Outcome{Verdict: leaf.TimedOut, Err: rejected}, neutral},
		{"a slow rejection", slowAt, leaf.Outcome{Verdict: leaf.CallerCancelled, Err: rejected, Took: time.Hour}, neutral},
		{"a rejection beside a failure", Config{}, leaf.Outcome{Err: errors.Join(rejected, errDown)}, failed},
		{"cancelled", Config{IsFailure: mustNotAsk}, canceled, neutral},
		{"cancelled, quickly", slowAt, leaf.Outcome{Verdict: leaf.CallerCancelled, Err: context.Canceled, Took: 100*ms - 1}, neutral},
		{"cancelled, late", slowAt, leaf.Outcome{Verdict: leaf.CallerCancelled, Err: context.Canceled, Took: 100 * ms}, slow},
		{"cancelled, late, slow is off", Config{SlowCall: Off}, leaf.Outcome{Verdict: leaf.CallerCancelled, Took: time.Hour}, neutral},
		{"timed out", Config{IsFailure: mustNotAsk}, leaf.Outcome{Verdict: leaf.TimedOut, Err: errDown}, failed},
		{"panicked", Config{IsFailure: mustNotAsk}, leaf.Outcome{Verdict: leaf.Panicked}, failed},
		{"panicked, slowly", slowAt, leaf.Outcome{Verdict: leaf.Panicked, Took: 100 * ms}, failed | slow},
		{"slow success", slowAt, leaf.Outcome{Took: 100 * ms}, succeeded | slow},
		{"quick success", slowAt, leaf.Outcome{Took: 100*ms - 1}, succeeded},
		{"slow failure", slowAt, leaf.Outcome{Err: errDown, Took: 100 * ms}, failed | slow},

		{"expired, half of what was given", Config{}, expired(20*ms, 40*ms), failed},
		{"expired, a hair before half", Config{}, expired(20*ms-1, 40*ms), neutral},
		{"expired, half of an odd time", Config{}, expired(1, 3), neutral},
		{"expired, more than half of it", Config{}, expired(2, 3), failed},
		{"expired, 100 ms of a long time", Config{}, expired(100*ms, time.Hour), failed},
		{"expired, less than 100 ms of it", Config{}, expired(100*ms-1, time.Hour), neutral},
		{"expired, unknown time", Config{}, expired(100*ms, 0), failed},
		{"expired, unknown time, early", Config{}, expired(100*ms-1, 0), neutral},
		{"expired, own blame", Config{BlameAfter: 10 * ms}, expired(10*ms, time.Hour), failed},
		{"expired, own blame, early", Config{BlameAfter: 10 * ms}, expired(10*ms-1, 11*ms), neutral},
		{"expired, never blamed", Config{BlameAfter: Off}, expired(time.Hour, time.Hour), neutral},
		{"expired, blamed, but no failure", Config{IsFailure: never}, expired(time.Hour, time.Hour), neutral},
		{"expired, blamed and a failure", Config{IsFailure: always}, expired(time.Hour, time.Hour), failed},
		{"expired, not blamed, not asked", Config{IsFailure: mustNotAsk}, expired(1, time.Hour), neutral},
		{"expired, expiry never counts", Config{IsFailure: IgnoreContext(nil)}, expired(time.Hour, time.Hour), neutral},
		{"expired, blamed and slow", slowAt, expired(time.Second, 0), failed | slow},
		{"expired, the longest times", Config{}, expired(math.MaxInt64, math.MaxInt64), failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := newPolicy(c.cfg)
			require.NoError(t, err)
			require.Equal(t, c.want, p.judge.Of(c.o))
		})
	}
}

func expired(took, given time.Duration) leaf.Outcome {
	return leaf.Outcome{Verdict: leaf.CallerExpired, Err: context.DeadlineExceeded, Took: took, Given: given}
}

func TestAPanickingIsFailureIsAFailureAndDoesNotPropagate(t *testing.T) {
	r := newRig(t, Config{IsFailure: func(error) bool { panic("broken") }})
	r.run(1, success)
	r.counts(1, 1)
	r.run(4, failure)
	r.is(Open)
}

func TestAnIsFailureThatEndsItsGoroutineIsAFailure(t *testing.T) {
	r := newRig(t, Config{IsFailure: func(error) bool { runtime.Goexit(); return false }})
	end, done := r.begin(), make(chan struct{})
	go func() {
		defer close(done)
		end(success)
	}()
	<-done
	r.counts(1, 1)
}

func TestIsFailureMayUseTheBreaker(t *testing.T) {
	var r *rig
	r = newRig(t, Config{IsFailure: func(err error) bool { return r.Snapshot().Calls >= 0 && err != nil }})
	r.run(2, failure)
	r.counts(2, 2)
}

func TestIgnoreContext(t *testing.T) {
	isFailure := IgnoreContext(nil)
	require.False(t, isFailure(nil))
	require.True(t, isFailure(errDown))
	require.False(t, isFailure(context.Canceled))
	require.False(t, isFailure(fmt.Errorf("wrapped: %w", context.DeadlineExceeded)))
	require.False(t, isFailure(errors.Join(errDown, context.Canceled)))

	isFailure = IgnoreContext(func(err error) bool { return err == nil })
	require.True(t, isFailure(nil))
	require.False(t, isFailure(errDown))
	require.False(t, isFailure(context.DeadlineExceeded))
}

func TestRatesAreComparedExactly(t *testing.T) {
	require.True(t, reaches(29, 100, 0.29), "0.29*100 is 28.999999999999996")
	exactly := func(k, n int, rate float64) {
		if !reaches(k, n, rate) || reaches(k-1, n, rate) || reaches(100*k-1, 100*n, rate) || !reaches(7*k, 7*n, rate) {
			t.Fatalf("%d of %d against %v", k, n, rate)
		}
	}
	for n := 1; n <= 400; n++ {
		for k := 1; k <= n; k++ {
			exactly(k, n, float64(k)/float64(n))
		}
	}
	// The closest fractions that windows of up to 65536 calls can hold.
	const n = 65536
	for k := 1; k < n; k++ {
		rate := float64(k) / (n - 1)
		exactly(k, n-1, rate)
		if reaches(k, n, rate) {
			t.Fatalf("%d/%d reaches %d/%d", k, n, k, n-1)
		}
	}
}

// Every percentage as a person writes it, to two decimals, against integer arithmetic.
func TestDecimalRatesAreComparedExactly(t *testing.T) {
	for basis := 1; basis <= 10_000; basis++ {
		var rate float64
		_, err := fmt.Sscan(fmt.Sprintf("%d.%04d", basis/10_000, basis%10_000), &rate)
		require.NoError(t, err)
		for _, n := range []int{1, 3, 7, 20, 100, 1000, 9999, 10_000, 65536} {
			k := (basis*n + 9999) / 10_000 // the least k with k/n >= basis/10000
			if !reaches(k, n, rate) || reaches(k-1, n, rate) {
				t.Fatalf("%d of %d against %v", k, n, rate)
			}
		}
	}
}

func TestThresholds(t *testing.T) {
	base := Config{MinCalls: 10, FailureRate: Off, Consecutive: Off, FailureCount: math.MaxInt}
	with := func(change func(*Config)) Config {
		c := base
		change(&c)
		return c
	}
	rate := with(func(c *Config) { c.FailureRate = 0.3 })
	count := with(func(c *Config) { c.FailureCount = 3 })
	row := with(func(c *Config) { c.Consecutive = 4 })
	lagging := with(func(c *Config) { c.SlowCall, c.SlowRate = 1, 0.3 })
	for _, c := range []struct {
		cfg  Config
		held totals
		row  int
		want string
	}{
		{base, totals{100, 100, 100}, 100, ""},
		{rate, totals{10, 3, 0}, 0, "failure rate 3/10"},
		{rate, totals{9, 9, 0}, 9, ""},
		{rate, totals{10, 2, 10}, 2, ""},
		{rate, totals{11, 3, 0}, 3, ""},
		{count, totals{3, 3, 0}, 0, "3 failures in the window"},
		{count, totals{1000, 3, 0}, 0, "3 failures in the window"},
		{count, totals{1000, 2, 0}, 2, ""},
		{Config{FailureCount: 1}, totals{1, 1, 0}, 1, "1 failure in the window"},
		{Config{Consecutive: 1}, totals{1, 1, 0}, 1, "1 failure in a row"},
		{row, totals{9, 4, 0}, 4, "4 failures in a row"},
		{row, totals{9, 9, 0}, 3, ""},
		{row, totals{10, 4, 0}, 4, ""},
		{lagging, totals{10, 0, 3}, 0, "slow rate 3/10"},
		{lagging, totals{9, 0, 9}, 0, ""},
		{lagging, totals{10, 10, 2}, 10, ""},
	} {
		p, err := newPolicy(c.cfg)
		require.NoError(t, err)
		reason, trip := p.trips(c.held, c.row)
		require.Equal(t, c.want, reason, "%+v row %d", c.held, c.row)
		require.Equal(t, c.want != "", trip)
	}
}

func TestOpenTimeGrowsUpToItsCapAndNeverOverflows(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want []time.Duration
	}{
		{Config{}, []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second}},
		{Config{OpenFor: time.Second, OpenGrowth: 2, MaxOpenFor: 5 * time.Second},
			[]time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}},
		{Config{OpenFor: time.Second, OpenGrowth: 1.5, MaxOpenFor: time.Minute},
			[]time.Duration{1e9, 1.5e9, 2.25e9, 3.375e9, 5.0625e9}},
		{Config{OpenFor: math.MaxInt64, OpenGrowth: math.MaxFloat64}, []time.Duration{math.MaxInt64, math.MaxInt64}},
		{Config{OpenFor: 1, OpenGrowth: math.MaxFloat64, MaxOpenFor: math.MaxInt64}, []time.Duration{1, math.MaxInt64, math.MaxInt64}},
	} {
		p, err := newPolicy(c.cfg)
		require.NoError(t, err)
		for k, want := range c.want {
			require.Equal(t, want, p.openTime(k), "re-opening %d", k)
		}
		last := time.Duration(0)
		for k := range 5000 {
			d := p.openTime(k)
			require.GreaterOrEqual(t, d, last)
			require.LessOrEqual(t, d, p.MaxOpenFor)
			last = d
		}
		require.Equal(t, last, p.openTime(math.MaxInt))
	}
}

func TestOpenJitterDrawsFromHalfToBelowTheWhole(t *testing.T) {
	for _, c := range []struct {
		u    float64
		d    time.Duration
		want time.Duration
	}{
		{0, 10, 5}, {0.5, 10, 7}, {0.999, 10, 9}, {0, 9, 5}, {0.999, 9, 8}, {0, 1, 1}, {0.9, 1, 1}, {0.9, 2, 1}, {0.9, 3, 2},
		{math.NaN(), 10, 5}, {-1, 10, 5}, {1, 10, 9}, {math.Inf(1), 10, 9}, {math.Inf(-1), 10, 5},
		{1, math.MaxInt64, math.MaxInt64 - 1},
	} {
		p, err := newPolicy(Config{OpenJitter: true, Rand: func() float64 { return c.u }})
		require.NoError(t, err)
		require.Equal(t, c.want, p.jittered(c.d), "u=%v d=%d", c.u, c.d)
	}
	p, err := newPolicy(Config{OpenJitter: true})
	require.NoError(t, err)
	for range 1000 {
		d := p.jittered(time.Second)
		require.True(t, d >= time.Second/2 && d < time.Second, "%v", d)
	}
	p, err = newPolicy(Config{Rand: func() float64 { panic("not asked without OpenJitter") }})
	require.NoError(t, err)
	require.Equal(t, time.Second, p.jittered(time.Second))
}
