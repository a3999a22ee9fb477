package redisbulkhead

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	redistest.RunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(redistest.Exit))
}

var bg = context.Background()

// calm is a store timeout that a busy test machine does not reach.
const calm = 5 * time.Second

// open makes a bulkhead that is closed with the test.
func open(t testing.TB, client redis.UniversalClient, cfg bulkhead.Config, opts Options) *Bulkhead {
	t.Helper()
	b, err := New(client, cfg, opts)
	require.NoError(t, err)
	t.Cleanup(func() { closed(t, b) })
	return b
}

func closed(t testing.TB, b *Bulkhead) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, 30*time.Second)
	defer cancel()
	require.NoError(t, b.Close(ctx))
}

// fleet is n bulkheads of one name, as n processes have them, on the shared server.
func fleet(t testing.TB, n int, cfg bulkhead.Config, opts Options) []*Bulkhead {
	t.Helper()
	s := redistest.Shared(t)
	if opts.Prefix == "" {
		opts.Prefix = s.Prefix(t)
	}
	if opts.Timeout == 0 {
		opts.Timeout = calm
	}
	all := make([]*Bulkhead, n)
	for i := range all {
		all[i] = open(t, s.Client(t), cfg, opts)
	}
	return all
}

// take takes a slot that must be free.
func take(t testing.TB, b *Bulkhead) *leaf.Permit {
	t.Helper()
	p, err := b.Acquire(bg)
	require.NoError(t, err)
	return &p
}

// latest is what the latest admission of b gave.
func latest(b *Bulkhead) (token uint64, s *slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, p := range b.held.places {
		if p.slot != nil && p.number == b.held.last {
			return uint64(p.number)<<32 | uint64(at), p.slot
		}
	}
	return 0, nil
}

func back(t testing.TB, p *leaf.Permit) {
	t.Helper()
	require.NoError(t, p.Settle(bg, leaf.Outcome{}))
}

func isFull(t testing.TB, b *Bulkhead) {
	t.Helper()
	_, err := b.TryAcquire(bg)
	require.ErrorIs(t, err, bulkhead.ErrFull)
}

func inUse(t testing.TB, b *Bulkhead) int {
	t.Helper()
	n, err := b.InUse(bg)
	require.NoError(t, err)
	return n
}

// waiting is a bulkhead whose calls wait longer than any test.
func waiting(n int) bulkhead.Config {
	return bulkhead.Config{Name: "db", MaxConcurrent: n, MaxWait: time.Hour}
}

func clientOf(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
