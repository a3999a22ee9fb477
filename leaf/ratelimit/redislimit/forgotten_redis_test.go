package redislimit

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/stretchr/testify/require"
)

// soon is what comes of c before a wake-up that was lost would show.
func soon[T any](t *testing.T, c chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(5 * time.Second):
		t.Fatal(what + " hangs: nobody wakes it")
	}
	return v
}

// One permit's token goes back while another's is under way: whatever happens in between, it is not forgotten.
func TestASettleThatWaitsForTheNextFlightIsNotForgotten(t *testing.T) {
	for name, disturb := range map[string]func(t *testing.T, l *Limiter){
		"by an Update": func(t *testing.T, l *Limiter) {
			require.NoError(t, l.Update(ratelimit.Config{Name: "x", Rate: 20, Per: time.Second, Burst: 10}))
		},
		"by a Close that has no patience": func(_ *testing.T, l *Limiter) {
			ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
			defer cancel()
			_ = l.Close(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Shared(t)
			c := s.Client(t)
			g := redistest.NewGate(c)
			l, err := New(c, ratelimit.Config{Name: "x", Rate: 10, Per: time.Second, Burst: 10}, Options{Prefix: s.Prefix(t), Timeout: relaxed})
			require.NoError(t, err)
			first, err := l.TryAcquire(bg)
			require.NoError(t, err)
			second, err := l.TryAcquire(bg)
			require.NoError(t, err)
			redistest.Eventually(t, "quiet", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return !l.flying })
			open, held := g.Shut()
			one, two := make(chan error, 1), make(chan error, 1)
			go func() { one <- first.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}) }()
			<-held
			go func() { two <- second.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}) }()
			redistest.Eventually(t, "the second", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.settlers) == 1 })
			disturb(t, l)
			open()
			soon(t, one, "the first Settle")
			soon(t, two, "the second Settle")
			require.NoError(t, l.Close(bg))
		})
	}
}

// Close's patience ends while a call is under way, whose failure a hook hears of that calls its own limiter.
func TestAHookMayCallItsLimiterThoughCloseHasGivenUp(t *testing.T) {
	s := redistest.Shared(t)
	c := s.Client(t)
	g := redistest.NewGate(c)
	var l *Limiter
	inHook := make(chan error, 8)
	l, err := New(c, ratelimit.Config{Name: "x", Rate: 10, Per: time.Second, Burst: 10}, Options{
		Prefix: s.Prefix(t), Timeout: 50 * time.Millisecond,
		OnStore: func(context.Context, leaf.StoreEvent) { inHook <- l.AllowN(bg, 1) },
	})
	require.NoError(t, err)
	open, held := g.Shut()
	caller, later := make(chan error, 1), make(chan error, 1)
	go func() { caller <- l.AllowN(bg, 1) }()
	<-held
	ctx, cancel := context.WithTimeout(bg, 5*time.Millisecond)
	defer cancel()
	_ = l.Close(ctx)
	soon(t, caller, "AllowN")
	go func() { later <- l.AllowN(bg, 1) }()
	soon(t, later, "a later AllowN")
	soon(t, inHook, "the hook's own AllowN")
	open()
	require.NoError(t, l.Close(bg))
}
