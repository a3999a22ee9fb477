package redistest

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

var bg = context.Background()

func TestServerAnswersAndForgetsAtRestart(t *testing.T) {
	began := time.Now()
	s := Start(t)
	t.Logf("started in %v", time.Since(began))
	c := s.Client(t)
	require.NoError(t, c.Set(bg, "k", "v", 0).Err())
	s.Restart(t)
	require.ErrorIs(t, c.Get(bg, "k").Err(), redis.Nil)
	require.NotEqual(t, 6379, s.Port)
}

func TestPersistentServerKeepsItsDataOverAKill(t *testing.T) {
	s := Start(t, Options{Persist: true})
	c := s.Client(t)
	require.NoError(t, c.Set(bg, "k", "v", 0).Err())
	s.Kill(t)
	require.False(t, s.Running())
	s.Restart(t)
	require.Equal(t, "v", c.Get(bg, "k").Val())
}

func TestOptionsReachTheServer(t *testing.T) {
	s := Start(t, Options{Password: "secret", MaxMemory: "5mb", Config: []string{"maxmemory-policy noeviction", "slowlog-max-len 7"}})
	require.ErrorContains(t, closing(t, redis.NewClient(&redis.Options{Addr: s.Addr})).Ping(bg).Err(), "NOAUTH")
	c := s.Client(t)
	require.Equal(t, map[string]string{"slowlog-max-len": "7"}, c.ConfigGet(bg, "slowlog-max-len").Val())
	require.Equal(t, map[string]string{"maxmemory": "5242880"}, c.ConfigGet(bg, "maxmemory").Val())
}

func TestTLSServerSpeaksNothingElse(t *testing.T) {
	s := Start(t, Options{TLS: true})
	require.NoError(t, s.Client(t).Ping(bg).Err())
	plain := closing(t, redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1}))
	require.Error(t, plain.Ping(bg).Err())
	stranger := closing(t, redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1, TLSConfig: &tls.Config{}}))
	require.ErrorContains(t, stranger.Ping(bg).Err(), "certificate")
}

func TestPausedServerIsSilentUntilItIsResumed(t *testing.T) {
	s := Start(t)
	o := s.Options()
	o.ReadTimeout, o.MaxRetries = 20*time.Millisecond, -1
	c := closing(t, redis.NewClient(o))
	Eventually(t, "a connection", func() bool { return c.Ping(bg).Err() == nil }) // 20 ms is little on a busy machine
	s.Pause(t)
	require.ErrorContains(t, c.Ping(bg).Err(), "timeout")
	s.Resume(t)
	Eventually(t, "an answer", func() bool { return c.Ping(bg).Err() == nil })
}

func TestCallsAreCountedAtTheServer(t *testing.T) {
	s := Start(t)
	c := s.Client(t)
	require.Error(t, c.EvalSha(bg, "0123456789012345678901234567890123456789", nil).Err())
	require.NoError(t, c.Eval(bg, "return 1", nil).Err())
	require.Equal(t, 1, s.Calls(t, "evalsha"))
	require.Equal(t, 2, s.Calls(t, "evalsha", "EVAL"))
	s.ResetCalls(t)
	require.Zero(t, s.Calls(t, "evalsha", "eval"))
}

func TestSharedServerIsOneAndPrefixesAreNot(t *testing.T) {
	require.Same(t, Shared(t), Shared(t))
	require.NotEqual(t, Shared(t).Prefix(t), Shared(t).Prefix(t))
}

func TestSentinelFailsOver(t *testing.T) {
	g := StartSentinel(t)
	c := g.Client(t)
	require.NoError(t, c.Set(bg, "k", "v", 0).Err())
	require.EqualValues(t, 1, g.Primary.Do(t, "wait", 1, 5000))
	g.Primary.Kill(t)
	g.AwaitPromotion(t)
	Eventually(t, "the client finds the new primary", func() bool { return c.Set(bg, "k", "w", 0).Err() == nil })
	require.Equal(t, "w", g.Replica.Do(t, "get", "k"))
}

func TestClusterMigratesASlotAndFailsOver(t *testing.T) {
	g := StartCluster(t)
	c := g.Client(t)
	require.NoError(t, c.Set(bg, "k", "v", 0).Err())
	home := g.Master(t, "k")
	g.Migrate(t, "k", func() { require.Equal(t, "v", c.Get(bg, "k").Val(), "an ASK is followed") })
	require.Equal(t, "v", c.Get(bg, "k").Val())
	next := g.Master(t, "k")
	require.NotSame(t, home, next)
	require.EqualValues(t, 1, next.Do(t, "wait", 1, 5000))
	g.KillMaster(t, "k")
	require.NotSame(t, next, g.AwaitMaster(t, "k"))
}
