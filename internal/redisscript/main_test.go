package redisscript

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	redistest.RunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(redistest.Exit))
}

var bg = context.Background()

// incr counts its runs, and tells them apart by nothing.
var incr = NewScript(`
local n = redis.call('INCR', key)
expire(3600000)
return n
`)

// once per token, however often it is sent.
var countToken = NewScript(`
if redis.call('HSETNX', key, ARGV[2], 1) == 1 then redis.call('HINCRBY', key, 'n', 1) end
expire(3600000)
return int(redis.call('HGET', key, 'n'))
`)

// spin takes its time: ARGV[2] milliseconds, inside the server.
var spin = NewScript(`
local t = redis.call('TIME')
local till = t[1] * 1000000 + t[2] + ARGV[2] * 1000
repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] >= till
return redis.call('INCR', key)
`)

// patient is for calls that a test must not lose to a busy machine.
const patient = 5 * time.Second

func open(t testing.TB, client redis.UniversalClient, opts Options) *Store {
	t.Helper()
	s, err := Open(client, "test", "kind", "the guard", opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(bg)) })
	return s
}

// onShared is a store of its own on the shared server.
func onShared(t testing.TB, opts Options) (*redistest.Server, *Store) {
	t.Helper()
	server := redistest.Shared(t)
	opts.Prefix = server.Prefix(t)
	return server, open(t, server.Client(t), opts)
}

func admit(t testing.TB, s *Store, c Call) (Reply, error) {
	t.Helper()
	c.Op = leaf.OpAdmit
	return s.Do(bg, c)
}

func integer(t testing.TB, r Reply, err error) int64 {
	t.Helper()
	require.NoError(t, err)
	n, err := r.Int()
	require.NoError(t, err)
	return n
}

func storeError(t testing.TB, err error) *leaf.StoreError {
	t.Helper()
	e, ok := errors.AsType[*leaf.StoreError](err)
	require.True(t, ok, "%v", err)
	return e
}

// heard is an OnStore hook that keeps what it hears.
type heard struct {
	mu     sync.Mutex
	events []leaf.StoreEvent
}

func (h *heard) hook(_ context.Context, e leaf.StoreEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *heard) kinds() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var kinds []string
	for _, e := range h.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (h *heard) has(kind string) bool {
	for _, k := range h.kinds() {
		if k == kind {
			return true
		}
	}
	return false
}

// count is one run of incr that has to succeed.
func count(t testing.TB, s *Store) int64 {
	t.Helper()
	r, err := admit(t, s, Call{Script: incr})
	return integer(t, r, err)
}

// warm has the client connected and the script known, so that a call under the default timeout is one round trip.
func warm(t testing.TB, s *Store) {
	t.Helper()
	_, err := open(t, s.client, Options{Prefix: "warm", Timeout: patient}).Do(bg, Call{Op: leaf.OpAdmit, Script: incr})
	require.NoError(t, err)
}
