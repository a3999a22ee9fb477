package redislimit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	redistest.RunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(redistest.Exit))
}

var (
	bg    = context.Background()
	start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
)

// relaxed is a budget for tests that are not about budgets, on a busy machine.
const relaxed = 5 * time.Second

// virtual is a time that stands still until it is set; for any number of limiters.
type virtual struct{ µs atomic.Int64 }

func newVirtual() *virtual {
	v := &virtual{}
	v.at(0)
	return v
}

func (v *virtual) now() time.Time     { return time.UnixMicro(v.µs.Load()) }
func (v *virtual) at(seconds float64) { v.µs.Store(start.UnixMicro() + int64(seconds*1e6)) }

// place is one key space on a server.
type place struct {
	t      testing.TB
	server *redistest.Server
	client redis.UniversalClient
	opts   Options
}

// on is a key space of its own on the shared server, with a budget that a busy machine keeps.
func on(t testing.TB) *place {
	t.Helper()
	s := redistest.Shared(t)
	return &place{t, s, s.Client(t), Options{Prefix: s.Prefix(t), Timeout: relaxed}}
}

// of is a server of the test's own.
func of(t testing.TB, s *redistest.Server) *place {
	t.Helper()
	return &place{t, s, s.Client(t), Options{Timeout: relaxed}}
}

// frozen lets the scripts run on v.
func (p *place) frozen(v *virtual) *place {
	p.opts.Now = v.now
	return p
}

// limiter is one more process on the place, as far as the store can tell.
func (p *place) limiter(cfg ratelimit.Config, change ...func(*Options)) *Limiter {
	p.t.Helper()
	if cfg.Name == "" {
		cfg.Name = "api"
	}
	opts := p.opts
	for _, f := range change {
		f(&opts)
	}
	l, err := New(p.client, cfg, opts)
	require.NoError(p.t, err)
	return p.closing(l)
}

func (p *place) quota(n int, change ...func(*Options)) *Limiter {
	p.t.Helper()
	opts := p.opts
	for _, f := range change {
		f(&opts)
	}
	l, err := NewQuota(p.client, "trial", n, opts)
	require.NoError(p.t, err)
	return p.closing(l)
}

func (p *place) closing(l *Limiter) *Limiter {
	p.t.Cleanup(func() { require.NoError(p.t, l.Close(bg)) })
	return l
}

// waitOf is what a refusal says.
func waitOf(t testing.TB, err error) time.Duration {
	t.Helper()
	limited, ok := errors.AsType[*ratelimit.LimitedError](err)
	require.True(t, ok, "want a LimitedError, got %v", err)
	return limited.Wait
}

func tokens(t testing.TB, l *Limiter) float64 {
	t.Helper()
	n, err := l.Tokens(bg)
	require.NoError(t, err)
	return n
}

func queued(l *Limiter) int { return int(l.Inspect().Gauges[1].Value) }

// row is one step of a table: at t seconds, n tokens are asked for; ok says whether they are there, left what is left.
type row struct {
	t    float64
	n    int
	ok   bool
	left float64
}

func replay(t *testing.T, v *virtual, l *Limiter, rows ...row) {
	t.Helper()
	for _, r := range rows {
		v.at(r.t)
		err := l.AllowN(bg, r.n)
		require.Equal(t, r.ok, err == nil, "AllowN(%d) at %vs: %v", r.n, r.t, err)
		if !r.ok {
			require.ErrorIs(t, err, ratelimit.ErrLimited)
		}
		require.Equal(t, r.left, tokens(t, l), "tokens after AllowN(%d) at %vs", r.n, r.t)
	}
}
