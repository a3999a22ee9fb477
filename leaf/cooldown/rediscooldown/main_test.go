package rediscooldown

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/jonboulle/clockwork"
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

// patient is a store timeout for tests that are not about timeouts.
const patient = 5 * time.Second

// fleet is several processes, as far as the store can tell, on one virtual time.
type fleet struct {
	t      testing.TB
	server *redistest.Server
	client redis.UniversalClient
	clock  *clockwork.FakeClock
	opts   Options
}

// virtual is a fleet on the shared server, whose store and local clocks stand still together.
func virtual(t testing.TB) *fleet {
	t.Helper()
	s, clock := redistest.Shared(t), clockwork.NewFakeClockAt(start)
	return &fleet{t, s, s.Client(t), clock, Options{Prefix: s.Prefix(t), Timeout: patient, Now: clock.Now}}
}

func (f *fleet) join(cfg cooldown.Config) *Cooldown {
	f.t.Helper()
	if cfg.Name == "" {
		cfg.Name = "partner"
	}
	if cfg.Clock == nil && f.clock != nil {
		cfg.Clock = f.clock
	}
	c, err := New(f.client, cfg, f.opts)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = c.Close(bg) }) // a test that looks at Close's error closes by itself
	return c
}

// heard waits until the store has heard all that c has to tell.
func heard(t testing.TB, c *Cooldown) {
	t.Helper()
	redistest.Eventually(t, "the store has heard", func() bool {
		c.news.mu.Lock()
		defer c.news.mu.Unlock()
		return !c.news.telling
	})
}

// quiet waits until no read is under way.
func quiet(t testing.TB, c *Cooldown) {
	t.Helper()
	redistest.Eventually(t, "the read has ended", func() bool {
		c.view.mu.Lock()
		defer c.view.mu.Unlock()
		return c.view.read == nil
	})
}

// refused asks, and gives the wait of the refusal; 0 = admitted.
func refused(t testing.TB, c *Cooldown) time.Duration {
	t.Helper()
	_, err := c.Acquire(bg)
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*cooldown.Error](err)
	require.True(t, ok, "%v", err)
	require.ErrorIs(t, err, cooldown.ErrCooling)
	require.Equal(t, c.Config().Name, e.Name)
	require.Positive(t, e.Wait)
	return e.Wait
}

// told is an OnStore hook that keeps what it hears.
type told struct {
	mu     sync.Mutex
	events []leaf.StoreEvent
}

func (h *told) hook(_ context.Context, e leaf.StoreEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *told) kinds() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var kinds []string
	for _, e := range h.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}
