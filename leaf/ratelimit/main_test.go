package ratelimit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// fixture is a limiter on a clock that is set by the second.
type fixture struct {
	*Limiter
	t     *testing.T
	clock *clockwork.FakeClock
}

func newFixture(t *testing.T, cfg Config) fixture {
	t.Helper()
	c := clockwork.NewFakeClockAt(start)
	cfg.Clock = c
	l, err := New(cfg)
	require.NoError(t, err)
	return fixture{l, t, c}
}

// at sets the clock, forwards or back.
func (f fixture) at(seconds float64) fixture {
	f.clock.Advance(start.Add(time.Duration(seconds * 1e9)).Sub(f.clock.Now()))
	return f
}

// row is one step of a table: at t seconds, n tokens are asked for; ok says whether they are there, left what is left.
type row struct {
	t    float64
	n    int
	ok   bool
	left float64
}

func (f fixture) replay(rows ...row) {
	f.t.Helper()
	for _, r := range rows {
		f.at(r.t)
		err := f.AllowN(r.n)
		require.Equal(f.t, r.ok, err == nil, "AllowN(%d) at %vs: %v", r.n, r.t, err)
		if !r.ok {
			require.ErrorIs(f.t, err, ErrLimited)
		}
		require.Equal(f.t, r.left, f.Tokens(), "tokens after AllowN(%d) at %vs", r.n, r.t)
	}
}

// wait is what a refusal says.
func waitOf(t *testing.T, err error) time.Duration {
	t.Helper()
	limited, ok := errors.AsType[*LimitedError](err)
	require.True(t, ok, "%v", err)
	return limited.Wait
}

func (f fixture) drain() {
	f.t.Helper()
	require.NoError(f.t, f.AllowN(f.Config().Burst))
}

var bg = context.Background()

// queued is the gauge.
func queuedIn(l *Limiter) int { return int(l.Inspect().Gauges[1].Value) }
