package redislimit

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// storeErr is the policy's refusal.
func storeErr(t *testing.T, err error) *leaf.StoreError {
	t.Helper()
	failed, ok := errors.AsType[*leaf.StoreError](err)
	require.True(t, ok, "want a StoreError, got %v", err)
	require.True(t, failed.Rejected())
	return failed
}

var hourly = ratelimit.Config{Name: "api", Rate: 1, Per: time.Hour, Burst: 10}

// Test 20: a server without memory: a clear error that says that nothing was executed, and the policy.
func TestOutOfMemory(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Config: []string{"maxmemory-policy noeviction"}})
	p := of(t, server)
	closed := func(o *Options) { o.OnOutage = leaf.FailClosed }
	l, q := p.limiter(hourly, closed), p.quota(5, closed)
	local := p.limiter(hourly, func(o *Options) { o.Instances = 5 })
	require.NoError(t, l.AllowN(bg, 1))
	server.Do(t, "config", "set", "maxmemory", "1")
	for _, l := range []*Limiter{l, q} {
		failed := storeErr(t, l.AllowN(bg, 1))
		require.True(t, failed.NotExecuted)
		require.ErrorContains(t, failed, "OOM")
	}
	require.NoError(t, local.AllowN(bg, 2))
	require.ErrorIs(t, local.AllowN(bg, 1), ratelimit.ErrLimited, "the share, not more")
	server.Do(t, "config", "set", "maxmemory", "0")
	require.NoError(t, l.AllowN(bg, 9), "at once: a server that answers is asked every time")
	require.NoError(t, q.AllowN(bg, 5))
}

// Test 20: under volatile-lru a limiter's key may be evicted, which refills its bucket; a quota's never is.
func TestEviction(t *testing.T) {
	server := redistest.Start(t, redistest.Options{MaxMemory: "3mb", Config: []string{"maxmemory-policy volatile-lru"}})
	p := of(t, server)
	p.opts.OnOutage = leaf.FailClosed
	l, q := p.limiter(hourly), p.quota(5)
	require.NoError(t, l.AllowN(bg, 10))
	require.NoError(t, q.AllowN(bg, 5))
	pad := strings.Repeat("x", 50_000)
	for i := 0; server.Info(t, "stats")["evicted_keys"] == "0"; i++ {
		require.Less(t, i, 1000)
		_, err := server.Try(t, "set", "pad"+strconv.Itoa(i), pad, "px", 3_600_000)
		require.NoError(t, err)
	}
	require.ErrorIs(t, q.AllowN(bg, 1), ratelimit.ErrLimited)
	server.Do(t, "del", l.store.Key())
	require.NoError(t, l.AllowN(bg, 10), "a lost key is a full bucket")
}

// Bad input: a key that holds something else is a clear error and the policy, and is never overwritten.
func TestForeignKeys(t *testing.T) {
	p := on(t)
	p.opts.OnOutage = leaf.FailClosed
	l, q := p.limiter(hourly), p.quota(5)
	for _, value := range []string{"hello", "", "-5", "1e9", "inf", "nan", "0x10", "5:0:0", "5:10:5", " 5", "5\n", "\x00"} {
		require.NoError(t, p.client.Set(bg, l.store.Key(), value, 0).Err())
		require.ErrorContains(t, storeErr(t, l.AllowN(bg, 1)), "holds something else", "%q", value)
		_, err := l.Tokens(bg)
		require.Error(t, err, "%q", value)
		require.Equal(t, value, p.client.Get(bg, l.store.Key()).Val())
	}
	for _, fill := range []func(string) error{
		func(k string) error { return p.client.HSet(bg, k, "a", "b").Err() },
		func(k string) error { return p.client.RPush(bg, k, "a").Err() },
		func(k string) error { return p.client.ZAdd(bg, k, redis.Z{Score: 1, Member: "a"}).Err() },
	} {
		for _, l := range []*Limiter{l, q} {
			require.NoError(t, p.client.Del(bg, l.store.Key()).Err())
			require.NoError(t, fill(l.store.Key()))
			storeErr(t, l.AllowN(bg, 1))
			require.NoError(t, p.client.Del(bg, l.store.Key()).Err())
			require.NoError(t, l.AllowN(bg, 1), "without it all is well")
		}
	}
	require.NoError(t, p.client.HSet(bg, q.store.Key(), "spent", "-3").Err())
	storeErr(t, q.AllowN(bg, 1))
}

// Bad input: wrong password, no permission, a server that knows no Lua: clear, certain, and the policy.
func TestServersThatRefuse(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Password: "secret"})
	server.Do(t, "acl", "setuser", "reader", "on", ">reader", "~*", "+@all", "-@scripting")
	for user, want := range map[string]string{"default": "WRONGPASS", "reader": "NOPERM", "": "unauthenticated"} {
		options := server.Options()
		options.Username, options.Password = user, user
		p := of(t, server)
		p.client, p.opts.OnOutage = redisClient(t, options), leaf.FailClosed
		l := p.limiter(hourly)
		failed := storeErr(t, l.AllowN(bg, 1))
		require.ErrorContains(t, failed, want)
		local := p.limiter(hourly, func(o *Options) { o.OnOutage, o.Instances = leaf.FailLocal, 10 })
		require.NoError(t, local.AllowN(bg, 1))
		require.ErrorIs(t, local.AllowN(bg, 1), ratelimit.ErrLimited, "never an unlimited admission")
	}
}

// A clock that steps back, on the server: mints nothing, and heals, at the rate from the step on.
func TestAServersClockThatStepsBack(t *testing.T) {
	v := newVirtual()
	p := on(t).frozen(v)
	l := p.limiter(ratelimit.Config{Rate: 1, Burst: 10})
	v.at(3600)
	require.NoError(t, l.AllowN(bg, 10))
	v.at(0)
	require.Equal(t, time.Second, waitOf(t, l.AllowN(bg, 1)))
	require.Equal(t, 0.0, tokens(t, l))
	v.at(1)
	require.NoError(t, l.AllowN(bg, 1))
	require.Error(t, l.AllowN(bg, 1))
	v.at(-3600) // and again
	require.Equal(t, time.Second, waitOf(t, l.AllowN(bg, 1)))
	v.at(-3599)
	require.NoError(t, l.AllowN(bg, 1))

	v.at(7200)
	require.NoError(t, l.AllowN(bg, 10))
	v.at(0)
	stranger := p.limiter(ratelimit.Config{Rate: 1, Burst: 10}) // that has never seen a later instant
	require.Equal(t, 2*time.Second, waitOf(t, stranger.AllowN(bg, 1)))
	v.at(1.999999)
	require.ErrorIs(t, stranger.AllowN(bg, 1), ratelimit.ErrLimited)
	v.at(3)
	require.NoError(t, stranger.AllowN(bg, 3), "what has come since it saw the bucket first")
	require.Equal(t, time.Second, waitOf(t, stranger.AllowN(bg, 1)))
}

// Smaller buckets under the same name, of processes that begin one after the other, take the debt of a larger one that is in use
// for no step of the clock.
func TestADeployOfASmallerBurstDoesNotRefillTheLargerBucket(t *testing.T) {
	v := newVirtual()
	p := on(t).frozen(v)
	large := p.limiter(ratelimit.Config{Rate: 2, Burst: 1000})
	var small []*Limiter
	require.NoError(t, large.AllowN(bg, 1000))
	total := 1000
	for second := range 100 {
		v.at(float64(second))
		for large.AllowN(bg, 1) == nil {
			total++
		}
		if second%10 == 0 {
			small = append(small, p.limiter(ratelimit.Config{Rate: 2, Burst: 5}))
		}
		for _, l := range small {
			require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited)
		}
		v.at(float64(second) + 0.75)
		for _, l := range small {
			require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited)
		}
	}
	require.LessOrEqual(t, total, 1000+2*100)
}

// What is not in use heals once an hour at most, for each of them.
func TestABucketIsCutOnSuspicionOnceAnHour(t *testing.T) {
	v := newVirtual()
	p := on(t).frozen(v)
	large, small := p.limiter(ratelimit.Config{Rate: 1, Burst: 100_000}), p.limiter(ratelimit.Config{Rate: 1, Burst: 10})
	spend := func() {
		for n := 100_000; n > 0; n /= 2 {
			for large.AllowN(bg, n) == nil {
			}
		}
	}
	for i := range 3 {
		spend()
		v.at(float64(2 + 4*i))
		require.ErrorIs(t, small.AllowN(bg, 1), ratelimit.ErrLimited)
		v.at(float64(4 + 4*i))
		require.Equal(t, i == 0, small.AllowN(bg, 1) == nil)
	}
}

// Standalone, Sentinel and Cluster.
func TestSentinelAndCluster(t *testing.T) {
	for name, client := range map[string]func() redis.UniversalClient{
		"sentinel": func() redis.UniversalClient { return redistest.StartSentinel(t).Client(t) },
		"cluster":  func() redis.UniversalClient { return redistest.StartCluster(t).Client(t) },
	} {
		p := &place{t: t, client: client(), opts: Options{Timeout: relaxed, OnOutage: leaf.FailClosed}}
		l, q := p.limiter(hourly), p.quota(5)
		for _, l := range []*Limiter{l, q} {
			burst := l.Config().Burst
			require.NoError(t, l.AllowN(bg, burst-1), name)
			permit, err := l.Acquire(bg)
			require.NoError(t, err, name)
			require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited, name)
			require.NoError(t, permit.Settle(context.Background(), leaf.Outcome{Verdict: leaf.NotRun}), name)
			require.InDelta(t, 1, tokens(t, l), 0.1, name)
		}
	}
}
