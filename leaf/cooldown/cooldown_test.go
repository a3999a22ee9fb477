package cooldown

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func newCooling(t *testing.T, cfg Config) (*Cooldown, *clockwork.FakeClock) {
	t.Helper()
	c := clockwork.NewFakeClockAt(start)
	cfg.Clock = c
	g, err := New(cfg)
	require.NoError(t, err)
	return g, c
}

func refusal(t *testing.T, err error) Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%v", err)
	return *e
}

func TestRefusesUntilTheInstantAndAdmitsFromItOn(t *testing.T) {
	g, c := newCooling(t, Config{Name: "api"})
	_, err := g.Acquire(bg)
	require.NoError(t, err, "a new one is open")
	g.Hint(bg, 10*time.Second)
	for _, ask := range []func(context.Context) (leaf.Permit, error){g.Acquire, g.TryAcquire} {
		_, err = ask(bg)
		require.Equal(t, Error{"api", 10 * time.Second}, refusal(t, err))
		require.ErrorIs(t, err, ErrCooling)
	}
	c.Advance(10*time.Second - 1)
	_, err = g.Acquire(bg)
	require.Equal(t, Error{"api", 1}, refusal(t, err))
	require.Equal(t, time.Duration(1), g.Wait())
	c.Advance(1)
	require.Zero(t, g.Wait())
	p, err := g.Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, p.Settle(bg, leaf.Outcome{}), "the zero permit")
}

func TestRefusalSpeaksForItself(t *testing.T) {
	e := &Error{Name: "api", Wait: 3 * time.Second}
	require.EqualError(t, e, `cooldown "api": cooling down for another 3s`)
	require.True(t, e.Rejected())
	wait, ok := e.RetryAfter()
	require.True(t, ok)
	require.Equal(t, 3*time.Second, wait)
}

func TestHintsOnlyEverExtendUpToMax(t *testing.T) {
	for _, c := range []struct {
		name  string
		hints []time.Duration
		want  time.Duration
	}{
		{"one", []time.Duration{time.Second}, time.Second},
		{"a longer one extends", []time.Duration{time.Second, 5 * time.Second}, 5 * time.Second},
		{"a shorter one does not shorten", []time.Duration{5 * time.Second, time.Second}, 5 * time.Second},
		{"zero changes nothing", []time.Duration{5 * time.Second, 0}, 5 * time.Second},
		{"negative changes nothing", []time.Duration{5 * time.Second, -time.Hour, math.MinInt64}, 5 * time.Second},
		{"zero alone opens nothing and closes nothing", []time.Duration{0, -1}, 0},
		{"exactly the maximum", []time.Duration{time.Minute}, time.Minute},
		{"capped at the maximum", []time.Duration{time.Minute + 1}, time.Minute},
		{"a century is capped too", []time.Duration{math.MaxInt64}, time.Minute},
	} {
		g, _ := newCooling(t, Config{})
		for _, h := range c.hints {
			g.Hint(bg, h)
		}
		require.Equal(t, c.want, g.Wait(), c.name)
	}
}

func TestPeekAndInspectArePure(t *testing.T) {
	g, c := newCooling(t, Config{Name: "api", Max: time.Hour})
	require.NoError(t, g.Peek(bg))
	require.Equal(t, leaf.Snapshot{Kind: "cooldown", Name: "api", State: "clear",
		Gauges: []leaf.Gauge{{Name: "wait_seconds", Limit: 3600}}}, g.Inspect())
	g.Hint(bg, 90*time.Second)
	before := g.state.Load()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	require.Equal(t, Error{"api", 90 * time.Second}, refusal(t, g.Peek(ctx)), "the instant alone, not ctx")
	require.Equal(t, leaf.Snapshot{Kind: "cooldown", Name: "api", State: "cooling",
		Gauges: []leaf.Gauge{{Name: "wait_seconds", Value: 90, Limit: 3600}}}, g.Inspect())
	c.Advance(2 * time.Minute)
	require.NoError(t, g.Peek(bg))
	require.Equal(t, "clear", g.Inspect().State)
	require.Zero(t, g.Wait())
	require.Same(t, before, g.state.Load())
}

// C21
func TestDoneContextIsItsOwnError(t *testing.T) {
	errX := errors.New("x")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(errX)
	for _, hint := range []time.Duration{0, time.Second} {
		g, _ := newCooling(t, Config{})
		g.Hint(bg, hint)
		_, err := g.Acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errX)
		require.NotErrorIs(t, err, ErrCooling)
	}
}

// C45
func TestConfigErrorsNameEveryFieldAndValue(t *testing.T) {
	bad := Config{Max: -time.Second, Clock: (*clockwork.FakeClock)(nil)}
	g, err := New(bad)
	require.Nil(t, g)
	require.ErrorContains(t, err, "cooldown: Max is -1s: want 0 (60s) or a positive duration")
	require.ErrorContains(t, err, "cooldown: Clock is a nil *clockwork.FakeClock")
	require.Panics(t, func() { MustNew(bad) })
	keep, _ := newCooling(t, Config{Name: "keep"})
	keep.Hint(bg, time.Second)
	require.Error(t, keep.Update(bad))
	require.EqualError(t, keep.Update(Config{Name: "other"}),
		`cooldown "other": Clock is real time: want the one that it was made with, a *clockwork.FakeClock: it may not change`)
	require.Equal(t, "keep", keep.Config().Name)
	require.Equal(t, time.Second, keep.Wait(), "an invalid cfg changes nothing")
	require.Equal(t, time.Minute, MustNew(Config{}).Config().Max, "the default is filled in")
	clock, used := MustNew(Config{}).Clock()
	require.Nil(t, clock)
	require.True(t, used)
}

func TestUpdateKeepsTheInstantAtMostTheNewMaxAhead(t *testing.T) {
	g, c := newCooling(t, Config{Max: time.Minute})
	g.Hint(bg, 50*time.Second)
	require.NoError(t, g.Update(Config{Name: "new", Max: time.Hour, Clock: c}))
	require.Equal(t, 50*time.Second, g.Wait())
	require.NoError(t, g.Update(Config{Name: "new", Max: 20 * time.Second, Clock: c}))
	_, err := g.Acquire(bg)
	require.Equal(t, Error{"new", 20 * time.Second}, refusal(t, err))
	clock, used := g.Clock()
	require.Same(t, c, clock)
	require.True(t, used)
	c.Advance(20 * time.Second)
	require.NoError(t, g.Update(Config{Max: time.Hour, Clock: c}))
	require.Zero(t, g.Wait())
}

func TestLargestMaxOverflowsNothing(t *testing.T) {
	g, c := newCooling(t, Config{Max: math.MaxInt64})
	c.Advance(time.Hour)
	g.Hint(bg, math.MaxInt64)
	require.Equal(t, math.MaxInt64-time.Hour, g.Wait(), "as far as the clock reaches")
	c.Advance(-2 * time.Hour) // behind the clock's own beginning
	require.GreaterOrEqual(t, g.Wait(), time.Duration(0))
}

// A stored instant further ahead than Max means reset, not wait; and reset is for good.
func TestInstantThatAJumpLeftBehindIsForgotten(t *testing.T) {
	g, c := newCooling(t, Config{})
	g.Hint(bg, 30*time.Second)
	c.Advance(-20 * 365 * 24 * time.Hour)
	require.Zero(t, g.Wait())
	require.NoError(t, g.Peek(bg))
	_, err := g.Acquire(bg)
	require.NoError(t, err)
	c.Advance(20*365*24*time.Hour - 30*time.Second)
	require.Zero(t, g.Wait(), "the clock that drifts towards it does not bring it back")
	g.Hint(bg, time.Second)
	require.Equal(t, time.Second, g.Wait())
}

func TestHintReplacesAnInstantThatAJumpLeftBehind(t *testing.T) {
	g, c := newCooling(t, Config{})
	g.Hint(bg, 30*time.Second)
	c.Advance(-20 * 365 * 24 * time.Hour)
	g.Hint(bg, time.Second)
	require.Equal(t, time.Second, g.Wait())
}

func TestSmallStepBackRefusesForMaxAtMost(t *testing.T) {
	g, c := newCooling(t, Config{})
	g.Hint(bg, 30*time.Second)
	c.Advance(-30 * time.Second)
	require.Equal(t, time.Minute, g.Wait())
	c.Advance(-1)
	require.Zero(t, g.Wait())
}

func TestCooldownCrossesIntoABubbleAndBack(t *testing.T) {
	g := MustNew(Config{})
	g.Hint(bg, time.Minute)
	require.Positive(t, g.Wait())
	synctest.Test(t, func(t *testing.T) {
		require.Zero(t, g.Wait())
		g.Hint(bg, time.Second)
		require.Equal(t, time.Second, g.Wait())
		<-time.After(time.Second)
		_, err := g.Acquire(bg)
		require.NoError(t, err)
		g.Hint(bg, time.Minute)
	})
	_, err := g.Acquire(bg)
	require.NoError(t, err, "a minute after an instant of the bubble's is decades ahead")
}

func TestConcurrentHintsKeepTheLatestInstant(t *testing.T) {
	g, c := newCooling(t, Config{})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 100 {
				g.Hint(bg, time.Duration(i*100+j)*time.Millisecond)
				_, _ = g.Acquire(bg)
				_ = g.Inspect()
				_ = g.Update(Config{Clock: c})
			}
		})
	}
	wg.Wait()
	require.Equal(t, 3199*time.Millisecond, g.Wait())
}

// Config is what is in force: New and Update take it back, and nothing changes.
func TestWhatConfigTellsIsTakenBack(t *testing.T) {
	for _, cfg := range []Config{{}, {Name: "api", Max: time.Hour}} {
		g := MustNew(cfg)
		told := g.Config()
		require.NoError(t, g.Update(told))
		require.Equal(t, told, g.Config())
		require.Equal(t, told, MustNew(told).Config())
	}
}
