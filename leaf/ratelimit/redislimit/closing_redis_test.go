package redislimit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// What a call takes ahead that is under way when Close begins goes back, too: of a quota it would be lost for ever.
func TestCloseGivesBackWhatComesMeanwhile(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr)
	p := of(t, s)
	other := p.quota(10)
	p.client = redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { _ = p.client.Close() })
	l := p.quota(10, func(o *Options) { o.Prefetch = 4 })
	arrived := make(chan struct{})
	proxy.OnReply(func(command []string) redistest.Action {
		if command[0] != "eval" {
			return redistest.Action{}
		}
		proxy.OnReply(nil)
		close(arrived)
		return redistest.Action{Delay: 100 * time.Millisecond}
	})
	asked := make(chan error, 1)
	go func() { asked <- l.AllowN(bg, 1) }()
	<-arrived
	require.NoError(t, l.Close(bg))
	require.NoError(t, <-asked)
	require.EqualValues(t, 9, tokens(t, other))
}

// What a quota's last call may have taken, whose reply was lost, is nobody's: Close has it undone.
func TestCloseUndoesAQuotasLostCall(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr)
	p := of(t, s)
	other := p.quota(10)
	p.client = redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { _ = p.client.Close() })
	l := p.quota(10, func(o *Options) { o.OnOutage = leaf.FailClosed })
	require.NoError(t, l.AllowN(bg, 1))
	proxy.OnReply(func([]string) redistest.Action { return redistest.Action{Drop: true} })
	err := l.AllowN(bg, 3) // sent twice, executed once
	failed, ok := errors.AsType[*leaf.StoreError](err)
	require.True(t, ok, "%v", err)
	require.False(t, failed.NotExecuted)
	require.EqualValues(t, 6, tokens(t, other))
	proxy.OnReply(nil)
	require.NoError(t, l.Close(bg))
	require.EqualValues(t, 9, tokens(t, other))
}

// A refusal writes nothing, not even the key's life.
func TestARefusalWritesNothing(t *testing.T) {
	p := on(t)
	l, q := p.limiter(hourly), p.quota(3)
	require.NoError(t, l.AllowN(bg, 10))
	require.NoError(t, q.AllowN(bg, 3))
	for _, l := range []*Limiter{l, q} {
		key := l.store.Key()
		was, life := p.server.Do(t, "dump", key), pttl(t, p, key)
		for range 3 {
			require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited)
		}
		require.Equal(t, was, p.server.Do(t, "dump", key))
		require.LessOrEqual(t, pttl(t, p, key), life)
	}
}

// Processes come and go, and the quota's key does not grow with them: slots that nobody has used for an hour go.
func TestAQuotaForgetsProcessesThatAreGone(t *testing.T) {
	p := on(t)
	key := p.quota(10).store.Key()
	seconds := time.Now().Unix()
	p.server.Do(t, "hset", key, "spent", 4)
	for i := range 200 {
		at := seconds - 7200
		if i%4 == 0 {
			at = seconds - 60
		}
		p.server.Do(t, "hset", key, fmt.Sprint("c:", i), fmt.Sprintf("1 1 %d 0 0 0 0 0 1", at))
	}
	l := p.quota(10)
	require.NoError(t, l.AllowN(bg, 1))
	require.EqualValues(t, 1+50+1, p.server.Do(t, "hlen", key), "what is spent, who was here lately, and the newcomer")
	require.EqualValues(t, 5, tokens(t, l))
}

// Bad input: a server that knows no scripts, and one that speaks TLS: the policy, and never an unlimited admission.
func TestServersThatCannotBeSpokenTo(t *testing.T) {
	noLua := redistest.Start(t, redistest.Options{Config: []string{`rename-command EVAL ""`, `rename-command EVALSHA ""`}}).Options()
	plain := redistest.Start(t, redistest.Options{TLS: true}).Options()
	plain.TLSConfig, plain.Dialer = nil, nil
	for _, o := range []*redis.Options{noLua, plain} {
		p := &place{t: t, client: redisClient(t, o), opts: Options{Timeout: time.Second, OnOutage: leaf.FailClosed}}
		storeErr(t, p.limiter(hourly).AllowN(bg, 1))
		local := p.limiter(hourly, func(o *Options) { o.OnOutage, o.Instances = leaf.FailLocal, 10 })
		require.NoError(t, local.AllowN(bg, 1))
		require.ErrorIs(t, local.AllowN(bg, 1), ratelimit.ErrLimited)
	}
}
