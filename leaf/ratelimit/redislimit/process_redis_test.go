package redislimit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/stretchr/testify/require"
)

// Group commit: one call in flight per key per process, everyone who arrives meanwhile rides on the next; exact.
func TestGroupCommit(t *testing.T) {
	server := redistest.Start(t)
	p := of(t, server)
	l := p.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 5000})
	require.NoError(t, l.AllowN(bg, 1))
	server.ResetCalls(t)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for range 60 {
				if l.AllowN(bg, 1) == nil {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(4999), admitted.Load())
	calls := server.Calls(t, "evalsha")
	t.Logf("%d calls for 6000 decisions", calls)
	require.Less(t, calls, 1200)
}

// Prefetch: a token that was taken ahead costs no store call, and is there for the fleet again after Close. OPEN's cousin
// (test 17): while the store's breaker is open, nothing is sent either.
func TestPrefetch(t *testing.T) {
	server := redistest.Start(t)
	p := of(t, server)
	l := p.limiter(hourly, func(o *Options) { o.Prefetch = 4 })
	require.NoError(t, l.AllowN(bg, 1))
	other := p.limiter(hourly)
	require.InDelta(t, 5, tokens(t, other), 0.1, "1 and 4")
	server.ResetCalls(t)
	for range 3 {
		require.NoError(t, l.AllowN(bg, 1))
	}
	permit, err := l.Acquire(bg)
	require.NoError(t, err)
	require.NoError(t, permit.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	require.Zero(t, server.Calls(t, "evalsha", "eval"), "none for four admissions and a refund")
	require.NoError(t, l.AllowN(bg, 2), "what is in stock, and was not enough, goes back first")
	require.InDelta(t, 0, tokens(t, other), 0.1)
	require.NoError(t, l.AllowN(bg, 4))
	require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited)

	late := p.limiter(ratelimit.Config{Name: "late", Rate: 1, Per: time.Hour, Burst: 10}, func(o *Options) { o.Prefetch = 4 })
	require.NoError(t, late.AllowN(bg, 1))
	require.NoError(t, late.Close(bg))
	require.InDelta(t, 9, tokens(t, p.limiter(late.Config())), 0.1)
}

// Close flushes, ends every goroutine, leaves the client open, and may be called again. Who waits gets what the policy says.
func TestClose(t *testing.T) {
	p := on(t)
	p.opts.OnOutage = leaf.FailClosed
	cfg := hourly
	cfg.MaxWait = 100 * time.Hour
	l := p.limiter(cfg)
	require.NoError(t, l.AllowN(bg, 10))
	answer := make(chan error, 1)
	go func() { answer <- l.Wait(bg, 3) }()
	redistest.Eventually(t, "it waits", func() bool { return queued(l) == 1 })
	require.NoError(t, l.Close(bg))
	storeErr(t, <-answer)
	require.NoError(t, l.Close(bg))
	failed := storeErr(t, l.AllowN(bg, 1))
	require.True(t, failed.NotExecuted)
	require.NoError(t, p.client.Ping(bg).Err())
	require.Equal(t, 0, queued(l))

	local := p.limiter(hourly, func(o *Options) { o.OnOutage = leaf.FailLocal })
	require.NoError(t, local.Close(bg))
	require.NoError(t, local.AllowN(bg, 10), "what the policy says")
	require.ErrorIs(t, local.AllowN(bg, 1), ratelimit.ErrLimited)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	require.NoError(t, p.limiter(hourly).Close(ctx), "nothing is under way")
}

// Inspect is local and says what was last heard of.
func TestInspect(t *testing.T) {
	server := redistest.Start(t)
	p := of(t, server)
	l := p.limiter(hourly)
	gauge := func(name string) leaf.Gauge {
		s := l.Inspect()
		require.Equal(t, "ratelimit", s.Kind)
		require.Equal(t, "api", s.Name)
		for _, g := range s.Gauges {
			if g.Name == name {
				return g
			}
		}
		t.Fatalf("no gauge %q", name)
		return leaf.Gauge{}
	}
	require.Equal(t, leaf.Gauge{Name: "tokens", Value: 10, Limit: 10}, gauge("tokens"))
	require.NoError(t, l.AllowN(bg, 4))
	require.InDelta(t, 6, gauge("tokens").Value, 0.1)
	server.Kill(t)
	require.NoError(t, l.AllowN(bg, 1))
	require.Equal(t, 1.0, gauge("store_down").Value)
}

// A hook may be slow, may use the limiter it hears of, and may panic: then the next call goes on with the panic, where
// nothing is held.
func TestOnStoreHooks(t *testing.T) {
	server := redistest.Start(t)
	p := of(t, server)
	var l *Limiter
	heard := make(chan error, 1)
	l = p.limiter(hourly, func(o *Options) {
		o.OnStore = func(ctx context.Context, e leaf.StoreEvent) {
			if e.Kind == "failed" {
				heard <- l.AllowN(ctx, 1)
				panic("the hook's own")
			}
		}
	})
	server.Kill(t)
	require.NoError(t, l.AllowN(bg, 1))
	require.NoError(t, <-heard)
	redistest.Eventually(t, "the panic arrives", func() (arrived bool) {
		defer func() { arrived = recover() != nil }()
		_ = l.AllowN(bg, 1)
		return false
	})
}

// A refund never fills the bucket above Burst, and two of them are two.
func TestRefundsAreExact(t *testing.T) {
	v := newVirtual()
	p := on(t).frozen(v)
	a, b := p.limiter(ratelimit.Config{Rate: 1, Burst: 3}), p.limiter(ratelimit.Config{Rate: 1, Burst: 3})
	var permits []*leaf.Permit
	for range 3 {
		permit, err := a.Acquire(bg)
		require.NoError(t, err)
		permits = append(permits, &permit)
	}
	require.NoError(t, permits[0].Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	require.NoError(t, permits[0].Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}), "once")
	require.Equal(t, 1.0, tokens(t, b))
	v.at(10)
	require.NoError(t, permits[1].Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	require.Equal(t, 3.0, tokens(t, b))
	require.NoError(t, b.AllowN(bg, 3))
	require.NoError(t, permits[2].Settle(bg, leaf.Outcome{Verdict: leaf.Ignored}), "it ran")
	require.Equal(t, 0.0, tokens(t, b))
}
