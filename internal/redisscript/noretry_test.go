package redisscript

import (
	"testing"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Section 13, test 7: with every retry of go-redis's own at its default, a lost reply is one execution. What go-redis does with
// a command of its own shows that the test could fail.
func TestLostReplyIsOneExecution(t *testing.T) {
	standalone := redistest.Start(t)
	group := redistest.StartSentinel(t)
	cluster := redistest.StartCluster(t)
	const plain = "{plain}"

	for _, c := range []struct {
		name  string
		proxy func(key string) (*redistest.Proxy, redis.UniversalClient)
	}{
		{"standalone", func(string) (*redistest.Proxy, redis.UniversalClient) {
			p := redistest.NewProxy(t, standalone.Addr)
			o := standalone.Options()
			o.Dialer = p.Dial
			return p, redis.NewClient(o)
		}},
		{"Sentinel", func(string) (*redistest.Proxy, redis.UniversalClient) {
			p := redistest.NewProxy(t, group.Primary.Addr)
			o := group.Options()
			o.Dialer = p.Dial
			return p, redis.NewFailoverClient(o)
		}},
		{"Cluster", func(key string) (*redistest.Proxy, redis.UniversalClient) {
			p := redistest.NewProxy(t, cluster.AwaitMaster(t, key).Addr)
			o := cluster.Options()
			o.Dialer, o.MaxRetries = p.Dial, -1
			return p, redis.NewClusterClient(o)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, client := c.proxy(Key("", "kind", "the guard"))
			defer client.Close()
			s := open(t, client, Options{Timeout: patient})
			require.EqualValues(t, 1, count(t, s))
			p.DropEvery(1, "evalsha", "eval")
			_, err := admit(t, s, Call{Script: incr})
			require.False(t, storeError(t, err).NotExecuted, "nobody knows: %v", err)
			p.OnReply(nil)
			require.EqualValues(t, 3, count(t, s))
			require.Equal(t, 1, p.Dropped())

			p, client = c.proxy(plain)
			defer client.Close()
			p.DropEvery(1, "incr")
			require.Error(t, client.Incr(bg, plain).Err())
			p.OnReply(nil)
			require.Greater(t, client.Incr(bg, plain).Val(), int64(2), "go-redis sends its own commands again")
		})
	}
}

// Section 13, test 6: a proxy that drops 5 % of the replies after execution. A script that is idempotent by a token is sent
// again where its fate is unknown, and executed = requested.
func TestDroppedRepliesExecuteExactlyWhatWasRequested(t *testing.T) {
	const requested = 2000
	server := redistest.Start(t)
	p := redistest.NewProxy(t, server.Addr)
	client := redis.NewClient(&redis.Options{Addr: p.Addr})
	defer client.Close()
	s := open(t, client, Options{Timeout: patient})
	p.DropShare(0.05, 13, "evalsha", "eval")
	failed := 0
	for token := range requested {
		if _, err := admit(t, s, Call{Script: countToken, Args: []any{token}, Resend: true}); err != nil {
			require.False(t, storeError(t, err).NotExecuted, "both replies were lost: nobody knows")
			failed++
		}
	}
	require.Equal(t, "2000", server.Do(t, "hget", s.Key(), "n"))
	require.Greater(t, p.Dropped(), requested/40)
	require.Less(t, failed, requested/40, "one reply in 400 is lost twice")
	require.Equal(t, requested+p.Dropped()-failed, server.Calls(t, "evalsha"), "each lost reply is one more, unless it was the second")
	t.Logf("%d requested, %d replies dropped, %d unknown to the caller", requested, p.Dropped(), failed)
}

// The same without a token: sent once, whatever happens.
func TestCallWithoutTokenIsNeverSentTwice(t *testing.T) {
	const requested = 500
	server := redistest.Start(t)
	p := redistest.NewProxy(t, server.Addr)
	client := redis.NewClient(&redis.Options{Addr: p.Addr})
	defer client.Close()
	s := open(t, client, Options{Timeout: patient})
	require.EqualValues(t, 1, count(t, s))
	p.DropShare(0.05, 13, "evalsha")
	failed := 0
	for range requested {
		if _, err := admit(t, s, Call{Script: incr}); err != nil {
			failed++
		}
	}
	p.OnReply(nil)
	require.Positive(t, failed)
	require.Equal(t, p.Dropped(), failed)
	require.EqualValues(t, requested+2, count(t, s))
}
