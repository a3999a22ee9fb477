package redislimit

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/stretchr/testify/require"
)

// waitless says that err is neither a refusal by the bucket nor by the policy.
func waitless(err error) bool {
	_, store := errors.AsType[*leaf.StoreError](err)
	return !errors.Is(err, ratelimit.ErrLimited) && !store
}

// behind is a limiter's place behind a proxy.
func behind(t *testing.T) (*place, *redistest.Proxy) {
	t.Helper()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	options := server.Options()
	options.Addr = proxy.Addr
	p := of(t, server)
	p.client = redisClient(t, options)
	p.opts.OnOutage = leaf.FailClosed
	return p, proxy
}

// Test 6: with 5 % of the replies lost after execution, executed = requested: no command is sent twice, so that each call takes
// its token once, whether its caller learns of it or not.
func TestLostRepliesTakeNoTokenTwice(t *testing.T) {
	const calls = 2000
	p, proxy := behind(t)
	l := p.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 3000})
	proxy.DropShare(0.05, 1, "evalsha", "eval")
	admitted, lost := 0, 0
	for range calls {
		switch err := l.AllowN(bg, 1); {
		case err == nil:
			admitted++
		default:
			failed, ok := errors.AsType[*leaf.StoreError](err)
			require.True(t, ok, "%v", err)
			require.False(t, failed.NotExecuted)
			lost++
		}
	}
	proxy.OnReply(nil)
	require.Equal(t, proxy.Dropped(), lost)
	require.Greater(t, lost, calls/40)
	require.Equal(t, calls, admitted+lost)
	require.InDelta(t, 3000-calls, tokens(t, l), 0.1)
}

// Test 6 for a quota: its calls carry a token, so that they are sent again, and a lost reply costs nobody anything: what is
// spent is what was admitted, to the last one.
func TestLostRepliesCostAQuotaNothing(t *testing.T) {
	p, proxy := behind(t)
	l := p.quota(3000)
	proxy.DropShare(0.15, 2, "evalsha", "eval")
	var admitted, failed atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 300 {
				permit, err := l.Acquire(bg)
				if err != nil {
					failed.Add(1)
					continue
				}
				admitted.Add(1)
				if i%3 == 0 { // refunds get lost, too, and count once
					if permit.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}) != nil {
						failed.Add(1)
					}
					admitted.Add(-1)
				}
			}
		})
	}
	all.Wait()
	require.Greater(t, proxy.Dropped(), 20)
	require.Positive(t, failed.Load(), "some were lost twice: the two that the store sends by itself")
	proxy.OnReply(nil)
	if l.AllowN(bg, 1) != nil { // the store's own breaker may be open
		redistest.Eventually(t, "the store is back", func() bool { return l.AllowN(bg, 1) == nil })
	}
	require.Equal(t, float64(3000-admitted.Load()-1), tokens(t, l))
}

// What was left at the budget, and executed later, is given back: nobody used it.
func TestALateSuccessIsGivenBack(t *testing.T) {
	for _, quota := range []bool{false, true} {
		p, proxy := behind(t)
		var l *Limiter
		short := func(o *Options) { o.Timeout = 300 * time.Millisecond }
		if quota {
			l = p.quota(10, short)
		} else {
			l = p.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 10}, short)
		}
		require.NoError(t, l.AllowN(bg, 1))
		held := atomic.Bool{}
		proxy.OnReply(func(command []string) redistest.Action {
			if len(command) > 0 && command[0] == "evalsha" && held.CompareAndSwap(false, true) {
				return redistest.Action{Delay: 700 * time.Millisecond}
			}
			return redistest.Action{}
		})
		err := l.AllowN(bg, 4)
		failed, ok := errors.AsType[*leaf.StoreError](err)
		require.True(t, ok, "%v", err)
		require.False(t, failed.NotExecuted)
		if quota {
			require.NoError(t, l.AllowN(bg, 1)) // the next call undoes it
			require.Equal(t, 8.0, tokens(t, l))
			continue
		}
		require.InDelta(t, 5, tokens(t, p.limiter(l.Config())), 0.1, "it was executed")
		redistest.Eventually(t, "the tokens are back", func() bool { return tokens(t, l) > 8.9 })
	}
}

// A call of a quota that arrives after its successor changes nothing.
func TestAQuotasOldCallChangesNothing(t *testing.T) {
	p := on(t)
	l := p.quota(10)
	script := func(seq, acked, refund int, runs ...any) []int64 {
		args := append([]any{10, "me", seq, acked, refund, 0}, runs...)
		reply, err := l.store.Do(bg, storeCall(args))
		require.NoError(t, err)
		n, err := reply.Ints(reply.Len())
		require.NoError(t, err)
		return n[1:]
	}
	require.Equal(t, []int64{3, 0, 0, 0, 1}, script(1, 0, 0, 3, 1, 0))
	require.Equal(t, []int64{3, 0, 0, 0, 1}, script(1, 0, 0, 3, 1, 0), "sent twice, counted once")
	require.Equal(t, []int64{5, 0, 0, 0, 1}, script(3, 1, 0, 2, 1, 0), "the second call was given up")
	require.Equal(t, []int64{5, 0, 0, 0}, script(2, 1, 0, 4, 1, 0), "and comes too late")
	require.Equal(t, []int64{7, 0, 0, 0, 1}, script(4, 3, 0, 2, 1, 0))
	require.Equal(t, []int64{6, 0, 0, 0, 1}, script(5, 3, 0, 1, 1, 0), "the fourth was executed unseen, and is undone")
	require.Equal(t, []int64{4, 0, 0, 0}, script(6, 5, 2), "a refund")
	require.Equal(t, []int64{6, 0, 0, 0}, script(7, 5, 0), "that was lost, and is undone")
	require.Equal(t, []int64{6, 0, 0, 0, 0}, script(8, 7, 0, 5, 1, 0), "refused")
}

// One lost reply does not even fail a quota's call: it is sent again, and counts once.
func TestAQuotasCallIsSentAgain(t *testing.T) {
	p, proxy := behind(t)
	l := p.quota(10)
	require.NoError(t, l.AllowN(bg, 1))
	lost := atomic.Bool{}
	proxy.OnReply(func(command []string) redistest.Action {
		return redistest.Action{Drop: len(command) > 0 && command[0] == "evalsha" && lost.CompareAndSwap(false, true)}
	})
	require.NoError(t, l.AllowN(bg, 3))
	require.Equal(t, 1, proxy.Dropped())
	require.Equal(t, 6.0, tokens(t, l))
}

// A refund that rides with takers fills the bucket to Burst and no further, for them as well.
func TestARefundDoesNotOverfillForItsOwnBatch(t *testing.T) {
	v := newVirtual()
	l := on(t).frozen(v).limiter(ratelimit.Config{Rate: 1, Burst: 3})
	require.NoError(t, l.AllowN(bg, 3))
	v.at(2.5)
	args := append(l.bucketArgs(l.now()), 0, -1, 0, 0, 2, 0, 1, 9, 0) // 2 come back, 9 calls want 1 each
	reply, err := l.store.Do(bg, redisscript.Call{Op: leaf.OpAdmit, Script: take, Args: args})
	require.NoError(t, err)
	n, err := reply.Ints(head + 1)
	require.NoError(t, err)
	require.Equal(t, int64(3), n[head])
}
