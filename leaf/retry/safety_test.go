package retry

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/fairlead/fairlead/budget"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

func strict(t *testing.T, attempts int) (*Retry, *budget.Tokens) {
	pool := budget.MustNewTokens(budget.TokenConfig{Capacity: 10})
	cfg := Config{Strict: true, MaxAttempts: attempts, Budget: pool, RetryIf: all, Backoff: Constant(time.Second), Jitter: None}
	return mustNew(t, cfg), pool
}

func TestStrictRefusesBeforeAnythingIsSent(t *testing.T) {
	r, pool := strict(t, 3)
	for name, s := range map[string]Safety{
		"the zero value": {}, "Unsafe": Unsafe, "no name": ReadOnly("", time.Hour), "no key": Idempotent("", time.Hour),
		"no time": ReadOnly("get", 0), "negative": Idempotent("k", -1), "much below": ReadOnly("get", math.MinInt64),
	} {
		_, err := DoSafe(t.Context(), r, s, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
		stop := stopOf(t, err)
		require.Equal(t, UnsafeReplay, stop.Reason, name)
		require.Zero(t, stop.Attempts, name)
		require.NoError(t, stop.Last, name)
	}
	_, err := Do(t.Context(), r, func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
	require.Equal(t, UnsafeReplay, stopOf(t, err).Reason, "Do is undeclared")
	require.Equal(t, 10, pool.Balance())
}

func TestStrictRunsWhatIsDeclared(t *testing.T) {
	for _, s := range []Safety{ReadOnly("get", time.Hour), Idempotent("key", time.Hour), ReadOnly("get", math.MaxInt64)} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := strict(t, 3)
			c := script(errA, errA, nil)
			v, err := DoSafe(t.Context(), r, s, c.fn)
			require.NoError(t, err)
			require.Equal(t, 3, v)
		})
	}
}

func TestStrictWithOneAttemptNeedsNoDeclaration(t *testing.T) {
	r := mustNew(t, Config{Strict: true, MaxAttempts: 1})
	v, err := Do(t.Context(), r, script(nil).fn)
	require.NoError(t, err)
	require.Equal(t, 1, v)
}

func TestNoRetryStartsAfterTheDeclarationHasExpired(t *testing.T) {
	for _, isStrict := range []bool{true, false} { // what is declared counts without Strict too
		synctest.Test(t, func(t *testing.T) {
			r, pool := strict(t, 9)
			if !isStrict {
				cfg := r.Config()
				cfg.Strict = false
				require.NoError(t, r.Update(cfg))
			}
			c := script(errA)
			_, err := DoSafe(t.Context(), r, Idempotent("key", 2*time.Second), c.fn)
			require.Equal(t, seconds(0, 1, 2), c.at, "one that starts at the very end is still covered")
			require.Equal(t, 2*time.Second, time.Since(c.start), "at once")
			stop := stopOf(t, err)
			require.Equal(t, UnsafeReplay, stop.Reason)
			require.Equal(t, 3, stop.Attempts)
			require.Equal(t, errA, stop.Last)
			require.Equal(t, 8, pool.Balance())
		})
	}
}

func TestADeclarationThatExpiresInTheSleepStartsNoRetry(t *testing.T) {
	clock := newClock()
	pool := budget.MustNewTokens(budget.TokenConfig{Capacity: 10, Clock: clock})
	r := mustNew(t, Config{Backoff: Constant(time.Second), Jitter: None, Budget: pool, Clock: clock})
	s := script(errA)
	result := make(chan error)
	go func() { _, err := DoSafe(t.Context(), r, ReadOnly("get", 2*time.Second), s.fn); result <- err }()
	require.NoError(t, clock.BlockUntilContext(t.Context(), 1))
	clock.Advance(3 * time.Second) // overslept
	require.Equal(t, UnsafeReplay, stopOf(t, <-result).Reason)
	require.Len(t, s.at, 1)
	require.Equal(t, 10, pool.Balance())
}

func TestSafetyIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Safety{}), unsafe.Sizeof("")+unsafe.Sizeof(time.Duration(0)))
}

// watched counts its readings.
type watched struct {
	clockwork.Clock
	readings int
}

func (w *watched) Now() time.Time {
	w.readings++
	return w.Clock.Now()
}

func (w *watched) Since(t time.Time) time.Duration {
	w.readings++
	return w.Clock.Since(t)
}

// A declaration for ever is one, ends nothing, and needs no reading of the clock; MaxElapsed needs its own all the same.
func TestADeclarationForEverReadsNoClock(t *testing.T) {
	for name, c := range map[string]struct {
		validFor, elapsed time.Duration
		readings          int
	}{
		"for ever": {math.MaxInt64, 0, 0}, "nearly": {math.MaxInt64 - 1, 0, 1}, "an hour": {time.Hour, 0, 1},
		"for ever, and MaxElapsed": {math.MaxInt64, time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			fake := clockwork.NewFakeClock()
			w := &watched{Clock: fake}
			r := mustNew(t, Config{MaxElapsed: c.elapsed, Backoff: Immediate, NoBudget: true, Clock: w})
			w.readings = 0
			l, err := r.Begin(t.Context(), ReadOnly("m", c.validFor))
			require.NoError(t, err)
			require.Equal(t, c.readings, w.readings)
			l.Sent()
			fake.Advance(100 * 365 * 24 * time.Hour)
			final := l.Judge(t.Context(), errA)
			require.Equal(t, c.validFor == time.Hour || c.elapsed > 0, final != nil)
			l.End()
		})
	}
}

// Section 2: neither where OnRetry is what took the time, with and without a delay.
func TestNoRetryStartsAfterTheDeclarationHasExpiredInAHook(t *testing.T) {
	for name, backoff := range map[string]Backoff{"no delay": Immediate, "a delay": Constant(time.Millisecond)} {
		synctest.Test(t, func(t *testing.T) {
			r := mustNew(t, Config{Backoff: backoff, Jitter: None, OnRetry: func(context.Context, Scheduled) { <-time.After(time.Minute) }})
			s := script(errA)
			_, err := DoSafe(t.Context(), r, ReadOnly("get", time.Second), s.fn)
			stop := stopOf(t, err)
			require.Equal(t, UnsafeReplay, stop.Reason, name)
			require.Equal(t, 1, stop.Attempts, name)
			require.ErrorIs(t, err, errA, name)
		})
	}
}
