package retry

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

func TestNewRefusesWhatIsOutOfRange(t *testing.T) { // C45
	clock := newClock()
	pool := budget.MustNewTokens(budget.TokenConfig{Capacity: 1, Clock: clock})
	for want, cfg := range map[string]Config{
		"retry: MaxAttempts is -2: want":                     {MaxAttempts: -2},
		"retry: MaxAttempts is 65: want":                     {MaxAttempts: 65},
		"retry: MaxAttempts is -2147483648: want":            {MaxAttempts: math.MinInt32},
		"retry: Backoff is -1ns for retry 1: want":           {Backoff: ExponentialBy(time.Second, 0.5)},
		"retry: Jitter is Proportional(1.5): want":           {Jitter: Proportional(1.5)},
		"retry: Jitter is Proportional(-0.1): want":          {Jitter: Proportional(-0.1)},
		"retry: Jitter is Proportional(NaN): want":           {Jitter: Proportional(math.NaN())},
		"retry: Jitter is Proportional(+Inf): want":          {Jitter: Proportional(math.Inf(1))},
		"retry: Jitter is Additive(-1s): want":               {Jitter: Additive(-time.Second)},
		"retry: MaxDelay is -1s: want":                       {MaxDelay: -time.Second},
		"retry: MaxDelay is 1s: want at least Backoff's":     {MaxDelay: time.Second, Backoff: Exponential(2 * time.Second)},
		"retry: MaxDelay is 1ms: want at least Backoff's":    {MaxDelay: time.Millisecond},
		"retry: MaxRetryAfter is -1ns: want":                 {MaxRetryAfter: -1},
		"retry: MaxElapsed is -1ns: want":                    {MaxElapsed: -1},
		"retry: Reserve is -1ns: want":                       {Reserve: -1},
		"retry: NoBudget is true beside a Budget: want":      {NoBudget: true, Budget: pool},
		"retry: Budget is a nil *budget.Tokens: want":        {Budget: (*budget.Tokens)(nil)},
		"retry: Clock is a nil *clockwork.FakeClock: want":   {Clock: (*clockwork.FakeClock)(nil)},
		"retry: Budget is nil: want a budget, as Strict":     {Strict: true, RetryIf: all},
		"retry: RetryIf is nil: want a function, as Strict ": {Strict: true, Budget: pool},
	} {
		r, err := New(cfg)
		require.Nil(t, r)
		require.ErrorContains(t, err, want)
		require.Panics(t, func() { MustNew(cfg) })
	}
	_, err := New(Config{Strict: true, RetryIf: all, NoBudget: true})
	require.ErrorContains(t, err, "Budget", "NoBudget is none")

	_, err = New(Config{MaxAttempts: -5, Jitter: Proportional(7), MaxDelay: -1, MaxElapsed: -1, Reserve: -1})
	for _, field := range []string{"MaxAttempts", "Jitter", "MaxDelay", "MaxElapsed", "Reserve"} {
		require.ErrorContains(t, err, field, "every problem at once")
	}
}

func all(error) bool { return true }

func TestNewAcceptsTheEndsOfEveryRange(t *testing.T) {
	for _, cfg := range []Config{
		{MaxAttempts: 1}, {MaxAttempts: 64}, {MaxAttempts: Unlimited},
		{Jitter: Proportional(0)}, {Jitter: Proportional(1)}, {Jitter: Additive(0)}, {Jitter: Additive(math.MaxInt64)},
		{MaxDelay: math.MaxInt64}, {MaxDelay: 1, Backoff: Immediate}, {MaxDelay: time.Second, Backoff: Constant(time.Second)},
		{MaxRetryAfter: math.MaxInt64, MaxElapsed: math.MaxInt64, Reserve: math.MaxInt64},
		{MaxAttempts: 1, Strict: true}, // nothing is retried
		{Backoff: Constant(time.Hour)}, // the default caps it
	} {
		mustNew(t, cfg)
	}
}

func TestConfigHasItsDefaultsFilledIn(t *testing.T) {
	clock := newClock()
	r := mustNew(t, Config{Name: "n", Clock: clock})
	cfg := r.Config()
	require.Equal(t, 3, cfg.MaxAttempts)
	require.Equal(t, 100*time.Millisecond, cfg.Backoff(1))
	require.Equal(t, Full, cfg.Jitter)
	require.Equal(t, 20*time.Second, cfg.MaxDelay)
	require.Equal(t, 20*time.Second, cfg.MaxRetryAfter)
	private := cfg.Budget.(*budget.Ratio)
	require.Equal(t, budget.RatioConfig{Ratio: 0.2, MinPerSecond: 10, TTL: 10 * time.Second, Clock: clock}, private.Config())
	got, used := r.Clock()
	require.Same(t, clock, got)
	require.True(t, used)

	require.Equal(t, time.Minute, mustNew(t, Config{MaxDelay: time.Minute}).Config().MaxRetryAfter, "MaxRetryAfter is MaxDelay")
	require.Nil(t, mustNew(t, Config{NoBudget: true}).Config().Budget)
}

func TestConfigCanBeGivenBack(t *testing.T) {
	shared := budget.MustNewRatio(budget.RatioConfig{})
	always := func(error) bool { return true }
	for _, cfg := range []Config{
		{}, {Backoff: Constant(time.Hour)}, {NoBudget: true}, {Clock: newClock()}, {MaxDelay: time.Hour}, {MaxRetryAfter: 3}, {Budget: shared},
		{MaxAttempts: Unlimited, Strict: true, RetryIf: always, Budget: shared}, {MaxAttempts: 1, Strict: true},
	} {
		r := mustNew(t, cfg)
		before := r.Config()
		require.NoError(t, r.Update(before))
		after := r.Config()
		for _, c := range []*Config{&before, &after} {
			c.Backoff, c.RetryIf = nil, nil // functions are equal to nothing
		}
		require.Equal(t, before, after)
		mustNew(t, r.Config())
	}
}

func TestWhatFollowsAnotherFieldGoesOnFollowingIt(t *testing.T) {
	r := mustNew(t, Config{})
	cfg := r.Config()
	cfg.MaxDelay = time.Minute
	require.NoError(t, r.Update(cfg))
	require.Equal(t, time.Minute, r.Config().MaxRetryAfter)

	cfg = r.Config()
	cfg.NoBudget = true
	require.NoError(t, r.Update(cfg))
	require.Nil(t, r.Config().Budget)

	cfg = mustNew(t, Config{}).Config()
	cfg.Strict, cfg.RetryIf = true, func(error) bool { return true }
	_, err := New(cfg)
	require.ErrorContains(t, err, "Budget is nil: want a budget, as Strict asks for", "nobody wrote one")
}

// A private budget is of one Retry: whoever wants to share it says so.
func TestAPrivateBudgetStaysPrivateToItsRetry(t *testing.T) {
	r := mustNew(t, Config{})
	private := r.Config().Budget
	require.NotSame(t, private, mustNew(t, r.Config()).Config().Budget)
	require.Same(t, private, mustNew(t, Config{Budget: private}).Config().Budget)
}

func TestUpdateKeepsThePrivateBudget(t *testing.T) {
	clock := newClock()
	r := mustNew(t, Config{Clock: clock})
	private := r.Config().Budget.(*budget.Ratio)
	token, _ := private.Reserve()
	token.Commit()
	require.NoError(t, r.Update(Config{MaxAttempts: 5, Clock: clock}))
	require.Same(t, private, r.Config().Budget)
	require.Equal(t, 99, private.Balance())
	require.NoError(t, r.Update(Config{NoBudget: true, Clock: clock}))
	require.Nil(t, r.Config().Budget)
	require.NoError(t, r.Update(Config{Clock: clock}))
	require.Same(t, private, r.Config().Budget, "also after it was not needed for a while")
}

func TestAnInvalidUpdateChangesNothing(t *testing.T) {
	r := mustNew(t, Config{MaxAttempts: 5})
	require.ErrorContains(t, r.Update(Config{MaxAttempts: 99}), "MaxAttempts is 99")
	require.EqualError(t, r.Update(Config{Name: "x", Clock: clockwork.NewFakeClock()}),
		`retry "x": Clock is a *clockwork.FakeClock: want the one that it was made with, real time: it may not change`)
	require.Equal(t, 5, r.Config().MaxAttempts)
	require.NoError(t, r.Update(Config{Clock: clockwork.NewRealClock()}), "real time is real time")
}

func TestUpdateIsForLoopsThatBeginLater(t *testing.T) {
	r := mustNew(t, Config{MaxAttempts: 2, Backoff: Immediate})
	runs := 0
	_, err := Do(t.Context(), r, func(context.Context) (int, error) {
		runs++
		require.NoError(t, r.Update(Config{MaxAttempts: 1}))
		return 0, errA
	})
	require.ErrorIs(t, err, errA)
	require.Equal(t, 2, runs)
	require.Equal(t, 1, r.Config().MaxAttempts)
}

func TestMaxAttemptsZeroIsThree(t *testing.T) { // C45: never unlimited
	runs := 0
	_, err := Do(t.Context(), mustNew(t, Config{Backoff: Immediate}), func(context.Context) (int, error) {
		runs++
		return 0, errA
	})
	require.Equal(t, 3, runs)
	stop, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	require.Equal(t, AttemptsExhausted, stop.Reason)
}
