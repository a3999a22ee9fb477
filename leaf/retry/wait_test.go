package retry

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// firstDelay is the delay that a loop chooses after err, or its stop.
func firstDelay(t *testing.T, cfg Config, err error, left time.Duration) (time.Duration, error) {
	t.Helper()
	clock := newClock()
	cfg.Clock = clock
	ctx, cancel := context.WithCancel(t.Context())
	if left > 0 {
		ctx, cancel = context.WithDeadline(t.Context(), clock.Now().Add(left))
	}
	defer cancel()
	l, begin := mustNew(t, cfg).Begin(ctx, Unsafe)
	require.NoError(t, begin)
	defer l.End()
	l.Sent()
	if final := l.Judge(ctx, err); final != nil {
		return 0, final
	}
	return l.Delay(), nil
}

func always(u float64) func() float64 { return func() float64 { return u } }

func TestAWaitAskedForIsSpreadUpwardsByAtMostOneStep(t *testing.T) {
	const hint = 5 * time.Second
	for _, c := range []struct {
		jitter Jitter
		u      float64
		want   time.Duration
	}{
		{Full, 0, hint}, {Full, 0.5, hint + 500*time.Millisecond}, {Full, 1, hint + time.Second - 1},
		{Equal, 0.5, hint + 250*time.Millisecond},
		{Proportional(0.1), 0.5, hint + 100*time.Millisecond}, {Proportional(1), 0.5, hint + 500*time.Millisecond},
		{Additive(2 * time.Second), 0.5, hint + 500*time.Millisecond}, // one step at most
		{None, 0.5, hint},
	} {
		got, err := firstDelay(t, Config{Backoff: Constant(time.Second), Jitter: c.jitter, Rand: always(c.u)}, &throttled{hint}, 0)
		require.NoError(t, err)
		require.InDelta(t, c.want, got, 1, "%+v", c)
		require.GreaterOrEqual(t, got, hint)
	}
}

func TestAWaitAskedForIsNeverEarlierThanTheBackoff(t *testing.T) {
	for _, u := range []float64{0, 0.3, 0.9} {
		for _, j := range []Jitter{Full, Equal, None, Proportional(0.5), Additive(time.Second)} {
			cfg := Config{Backoff: Constant(10 * time.Second), Jitter: j, Rand: always(u)}
			own, err := firstDelay(t, cfg, errA, 0)
			require.NoError(t, err)
			got, err := firstDelay(t, cfg, &throttled{2 * time.Second}, 0)
			require.NoError(t, err)
			require.GreaterOrEqual(t, got, own)
			require.GreaterOrEqual(t, got, 2*time.Second)
		}
	}
}

func TestTheJitterIsCutNeverTheWait(t *testing.T) {
	cfg := Config{Backoff: Constant(10 * time.Second), Rand: always(0.9), MaxRetryAfter: 30 * time.Second}
	for _, c := range []struct {
		name             string
		hint, left, want time.Duration
		reserve, elapsed time.Duration
	}{
		{name: "MaxRetryAfter", hint: 25 * time.Second, want: 30 * time.Second},
		{name: "at MaxRetryAfter", hint: 30 * time.Second, want: 30 * time.Second},
		{name: "the deadline", hint: 12 * time.Second, left: 15 * time.Second, want: 15*time.Second - 1},
		{name: "Reserve", hint: 12 * time.Second, left: 15 * time.Second, reserve: 2 * time.Second, want: 13 * time.Second},
		{name: "MaxElapsed", hint: 12 * time.Second, elapsed: 14 * time.Second, want: 14 * time.Second},
		{name: "nothing", hint: 12 * time.Second, want: 21 * time.Second},
	} {
		cfg := cfg
		cfg.Reserve, cfg.MaxElapsed = c.reserve, c.elapsed
		got, err := firstDelay(t, cfg, &throttled{c.hint}, c.left)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
}

func TestWhatDoesNotFitIsADeferralOrAnEarlyStop(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name          string
		cfg           Config
		hint, left    time.Duration
		reason        Reason
		wait          time.Duration
		asked         time.Duration
		deadlineMatch bool
	}{
		{"own delay, deadline", Config{}, 0, s, RetryDelayExceedsDeadline, s, 0, true},
		{"own delay, Reserve", Config{Reserve: s}, 0, 2*s - 1, RetryDelayExceedsDeadline, s, 0, true},
		{"own delay above the hint", Config{}, s / 2, s, RetryDelayExceedsDeadline, s, s / 2, true},
		{"hint, deadline", Config{}, 5 * s, 5 * s, RetryAfterExceedsDeadline, 5 * s, 5 * s, true},
		{"hint, Reserve", Config{Reserve: s}, 5 * s, 6*s - 1, RetryAfterExceedsDeadline, 5 * s, 5 * s, true},
		{"hint, maximum", Config{MaxDelay: 2 * s}, 2*s + 1, 0, RetryAfterExceedsMaximumDelay, 2*s + 1, 2*s + 1, false},
		{"hint, maximum before deadline", Config{MaxRetryAfter: 4 * s}, 5 * s, s, RetryAfterExceedsMaximumDelay, 5 * s, 5 * s, false},
		{"hint, absurd", Config{}, math.MaxInt64, 0, RetryAfterExceedsMaximumDelay, math.MaxInt64, math.MaxInt64, false},
		{"own delay, MaxElapsed", Config{MaxElapsed: s - 1}, 0, 0, MaxElapsedExceeded, s, 0, false},
		{"hint, MaxElapsed", Config{MaxElapsed: 4 * s}, 5 * s, 0, MaxElapsedExceeded, 5 * s, 5 * s, false},
		{"the deadline before MaxElapsed", Config{MaxElapsed: s / 2}, 0, s, RetryDelayExceedsDeadline, s, 0, true},
	} {
		c.cfg.Backoff, c.cfg.Jitter = Constant(s), None
		_, err := firstDelay(t, c.cfg, &throttled{c.hint}, c.left)
		stop := stopOf(t, err)
		require.Equal(t, c.reason, stop.Reason, c.name)
		require.Equal(t, c.wait, stop.Wait, c.name)
		asked, ok := stop.RetryAfter()
		require.Equal(t, c.asked, asked, c.name)
		require.Equal(t, asked > 0, ok, c.name)
		require.Equal(t, c.deadlineMatch, errors.Is(err, context.DeadlineExceeded), c.name)
		require.ErrorIs(t, err, stop.Last, c.name)
	}
}

func TestReserveIsWhatMustBeLeft(t *testing.T) {
	cfg := Config{Backoff: Constant(time.Second), Jitter: None, Reserve: time.Second}
	got, err := firstDelay(t, cfg, errA, 2*time.Second)
	require.NoError(t, err, "exactly Reserve is enough")
	require.Equal(t, time.Second, got)
	cfg.Reserve = 0
	_, err = firstDelay(t, cfg, errA, time.Second+1)
	require.NoError(t, err, "any positive rest")
	cfg.Backoff, cfg.Reserve = Immediate, 2*time.Second
	_, err = firstDelay(t, cfg, errA, time.Second)
	require.Equal(t, RetryDelayExceedsDeadline, stopOf(t, err).Reason, "also without a delay")
}

func TestMaxElapsedMayEndExactlyThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustNew(t, Config{MaxAttempts: 9, Backoff: Constant(time.Second), Jitter: None, MaxElapsed: 3 * time.Second})
		s := script(errA)
		_, err := Do(t.Context(), r, s.fn)
		require.Equal(t, seconds(0, 1, 2, 3), s.at)
		require.Equal(t, MaxElapsedExceeded, stopOf(t, err).Reason)

		s = script(errA)
		_, err = Do(t.Context(), r, func(ctx context.Context) (int, error) {
			<-time.After(time.Minute)
			return s.fn(ctx)
		})
		require.Len(t, s.at, 1, "it cuts no attempt")
		require.Equal(t, MaxElapsedExceeded, stopOf(t, err).Reason)
	})
}

func TestAClockThatJumpsBackBeginsMaxElapsedAnew(t *testing.T) {
	clock := newClock()
	r := mustNew(t, Config{Backoff: Immediate, MaxElapsed: time.Second, Clock: clock, MaxAttempts: 9})
	l, err := r.Begin(t.Context(), ReadOnly("get", time.Second))
	require.NoError(t, err)
	l.Sent()
	clock.Advance(-26 * 365 * 24 * time.Hour)
	require.NoError(t, l.Judge(t.Context(), errA))
	clock.Advance(time.Second + 1)
	require.Equal(t, MaxElapsedExceeded, stopOf(t, l.Judge(t.Context(), errA)).Reason)
}

func TestWhereTheHintComesFrom(t *testing.T) {
	cfg := Config{Backoff: Constant(time.Second), Jitter: None}
	for _, c := range []struct {
		name string
		find func(error) (time.Duration, bool)
		err  error
		want time.Duration
	}{
		{"the error's own", nil, &throttled{5 * time.Second}, 5 * time.Second},
		{"deep in its tree", nil, errors.Join(errA, &throttled{5 * time.Second}), 5 * time.Second},
		{"none", nil, errA, time.Second},
		{"zero is none", nil, &throttled{}, time.Second},
		{"negative is none", nil, &throttled{-time.Hour}, time.Second},
		{"an upper bound is none", nil, &upper{throttled{5 * time.Second}}, time.Second},
		{"a function's", func(error) (time.Duration, bool) { return 3 * time.Second, true }, &throttled{5 * time.Second}, 3 * time.Second},
		{"a function's false", func(error) (time.Duration, bool) { return 3 * time.Second, false }, &throttled{5 * time.Second}, time.Second},
		{"a function's negative", func(error) (time.Duration, bool) { return -1, true }, errA, time.Second},
	} {
		cfg.RetryAfter = c.find
		got, err := firstDelay(t, cfg, c.err, 0)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
}

type upper struct{ throttled }

func (u *upper) UpperBound() bool { return true }

func TestTheLastAttemptsWaitIsStillTold(t *testing.T) {
	cfg := Config{MaxAttempts: 1, RetryAfter: func(error) (time.Duration, bool) { return time.Minute, true }}
	_, err := firstDelay(t, cfg, errA, 0)
	stop := stopOf(t, err)
	require.Equal(t, AttemptsExhausted, stop.Reason)
	wait, ok := stop.RetryAfter()
	require.True(t, ok)
	require.Equal(t, time.Minute, wait)
}

func TestAnOversleptDeadlineStartsNoAttempt(t *testing.T) {
	clock := newClock() // ctx's own timer runs on real time: only the policy's clock knows
	ctx, cancel := context.WithDeadline(t.Context(), clock.Now().Add(10*365*24*time.Hour))
	defer cancel()
	r := mustNew(t, Config{Backoff: Constant(time.Second), Jitter: None, Clock: clock})
	s := script(errA)
	result := make(chan error)
	go func() { _, err := Do(ctx, r, s.fn); result <- err }()
	require.NoError(t, clock.BlockUntilContext(t.Context(), 1))
	clock.Advance(11 * 365 * 24 * time.Hour)
	err := <-result
	require.Len(t, s.at, 1)
	require.Equal(t, RetryDelayExceedsDeadline, stopOf(t, err).Reason)
	require.ErrorIs(t, err, errA)
}
