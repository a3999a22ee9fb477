package redislimit

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// C24: more than Burst is a programming error, not a delay; Burst itself is possible; amounts are not negative.
func TestC24MoreThanBurst(t *testing.T) {
	v, fake := newVirtual(), clockwork.NewFakeClock()
	cfg := ratelimit.Config{Rate: 1, Burst: 5, MaxWait: time.Minute, Clock: fake}
	l := on(t).frozen(v).limiter(cfg)
	err := l.Wait(bg, 6)
	require.ErrorContains(t, err, "6")
	require.ErrorContains(t, err, "5")
	require.NotErrorIs(t, err, ratelimit.ErrLimited)
	var hint interface {
		RetryAfter() (time.Duration, bool)
	}
	require.False(t, errors.As(err, &hint), "no wait would help")
	require.Equal(t, 5.0, tokens(t, l))

	require.NoError(t, l.AllowN(bg, 5))
	require.Equal(t, 0.0, tokens(t, l))
	waited := make(chan error)
	go func() { waited <- l.Wait(bg, 5) }()
	redistest.Eventually(t, "the waiter waits", func() bool { return queued(l) == 1 })
	v.at(4.999999)
	fake.Advance(5*time.Second - 1) // it asks once a second, and is refused each time
	select {
	case err := <-waited:
		t.Fatalf("admitted too early: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	v.at(5)
	redistest.Eventually(t, "admitted at 5 s", func() bool {
		fake.Advance(time.Microsecond)
		select {
		case err := <-waited:
			require.NoError(t, err)
			return true
		default:
			return false
		}
	})
	require.Equal(t, 0.0, tokens(t, l))

	full := on(t).frozen(newVirtual()).limiter(cfg)
	require.NoError(t, full.AllowN(bg, 0))
	require.Equal(t, 5.0, tokens(t, full))
	require.ErrorContains(t, full.AllowN(bg, -1), "-1")
	require.Equal(t, 5.0, tokens(t, full))
}

// C26: fractions of a token are kept.
func TestC26Fractions(t *testing.T) {
	cfg := ratelimit.Config{Rate: 1, Per: 10 * time.Second, Burst: 5}
	v := newVirtual()
	l := on(t).frozen(v).limiter(cfg)
	replay(t, v, l, row{0, 5, true, 0}, row{25, 2, true, 0.5}, row{29, 1, false, 0.9}, row{30, 1, true, 0})

	v = newVirtual()
	l = on(t).frozen(v).limiter(cfg)
	require.NoError(t, l.AllowN(bg, 5))
	var admitted []int
	for second := 1; second <= 100; second++ {
		v.at(float64(second))
		if l.AllowN(bg, 1) == nil {
			admitted = append(admitted, second)
		}
	}
	require.Equal(t, []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, admitted)
}

// C36: a script flush costs one more command; a reply that was lost is executed once, and not sent again.
func TestC36ScriptFlushAndLostReply(t *testing.T) {
	for _, policy := range []leaf.Outage{leaf.FailClosed, leaf.FailOpen, leaf.FailLocal} {
		t.Run(policy.String(), func(t *testing.T) {
			server := redistest.Start(t)
			proxy := redistest.NewProxy(t, server.Addr)
			cfg := ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 10}
			p := of(t, server)
			other := p.limiter(cfg)
			options := server.Options()
			options.Addr = proxy.Addr
			p.client = redisClient(t, options)
			l := p.limiter(cfg, func(o *Options) { o.OnOutage = policy })

			require.NoError(t, l.AllowN(bg, 1))
			require.InDelta(t, 9, tokens(t, other), 0.01)
			server.Do(t, "script", "flush")
			server.ResetCalls(t)
			require.NoError(t, l.AllowN(bg, 1))
			require.Equal(t, 1, server.Calls(t, "evalsha"))
			require.Equal(t, 1, server.Calls(t, "eval"))
			require.InDelta(t, 8, tokens(t, other), 0.01)

			server.ResetCalls(t)
			proxy.DropEvery(1, "evalsha", "eval")
			began := time.Now()
			err := l.AllowN(bg, 1)
			require.Less(t, time.Since(began), relaxed)
			if policy == leaf.FailClosed {
				failed, ok := errors.AsType[*leaf.StoreError](err)
				require.True(t, ok, "%v", err)
				require.False(t, failed.NotExecuted, "nobody knows")
				require.True(t, failed.Rejected())
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, 1, server.Calls(t, "evalsha", "eval"), "sent once")
			require.NoError(t, other.AllowN(bg, 1))
			require.InDelta(t, 6, tokens(t, other), 0.01)
		})
	}
}

func pttl(t *testing.T, p *place, key string) time.Duration {
	t.Helper()
	d, err := p.client.PTTL(bg, key).Result()
	require.NoError(t, err)
	return d
}

// C37 (a): the key lives as long as it means something, and no longer.
func TestC37TheKeyLivesUntilTheBucketIsFull(t *testing.T) {
	v, p := newVirtual(), on(t)
	cfg := ratelimit.Config{Rate: 1, Per: time.Minute, Burst: 10}
	real := p.limiter(cfg)
	require.NoError(t, real.AllowN(bg, 10))
	ttl := pttl(t, p, real.store.Key())
	require.Greater(t, ttl, 599*time.Second)
	require.Less(t, ttl, 601*time.Second)

	l := on(t).frozen(v).limiter(cfg)
	require.NoError(t, l.AllowN(bg, 10))
	require.Greater(t, pttl(t, p, l.store.Key()), 3599*time.Second, "under a virtual clock: at least an hour")
	v.at(61)
	require.NoError(t, l.AllowN(bg, 1))
	require.Equal(t, 59*time.Second, waitOf(t, l.AllowN(bg, 1)))
}

// IdleTTL is extra life; -1 = never expires.
func TestIdleTTL(t *testing.T) {
	p := on(t)
	cfg := ratelimit.Config{Name: "idle", Rate: 1, Per: time.Minute, Burst: 10}
	l := p.limiter(cfg, func(o *Options) { o.IdleTTL = 720 * time.Hour })
	require.NoError(t, l.AllowN(bg, 1))
	require.InDelta(t, 720*3600+60, pttl(t, p, l.store.Key()).Seconds(), 5)
	never := p.limiter(cfg, func(o *Options) { o.IdleTTL = -1 })
	require.NoError(t, never.AllowN(bg, 1))
	require.Equal(t, time.Duration(-1), pttl(t, p, never.store.Key()))
}

// A quota's key that somebody gave an end to loses it with the next call that takes anything: its end would hand the quota out again.
func TestAQuotasKeyNeverKeepsAnExpiry(t *testing.T) {
	p := on(t)
	q := p.quota(3)
	require.NoError(t, q.AllowN(bg, 1))
	require.Equal(t, time.Duration(-1), pttl(t, p, q.store.Key()))
	require.NoError(t, p.client.Expire(bg, q.store.Key(), time.Hour).Err())
	require.NoError(t, q.AllowN(bg, 1))
	require.Equal(t, time.Duration(-1), pttl(t, p, q.store.Key()))
}

// C37 (b): a key without an expiry gets one, whatever is decided.
func TestC37AKeyWithoutExpiryGetsOne(t *testing.T) {
	cfg := ratelimit.Config{Rate: 1, Per: time.Minute, Burst: 10}
	for _, value := range []string{"5", "0", "99999999999999999999", strconv.FormatInt((time.Now().UnixMicro()-epoch+3600e6)*16, 10)} {
		t.Run(value, func(t *testing.T) {
			p := on(t)
			l := p.limiter(cfg)
			require.NoError(t, p.client.Set(bg, l.store.Key(), value, 0).Err())
			err := l.AllowN(bg, 1)
			if err != nil { // too far ahead for any bucket: empty, and filling from now on, if nobody moves it
				require.LessOrEqual(t, waitOf(t, err), 2*time.Minute)
			}
			require.Positive(t, pttl(t, p, l.store.Key()))
		})
	}
	p := on(t)
	l := p.limiter(cfg)
	require.NoError(t, l.AllowN(bg, 10))
	require.NoError(t, p.client.Persist(bg, l.store.Key()).Err())
	require.Error(t, l.AllowN(bg, 1))
	require.Greater(t, pttl(t, p, l.store.Key()), 599*time.Second)
}

// C37 (c): a century per token is counted, exactly, and its expiry is finite.
func TestC37AstronomicalBuckets(t *testing.T) {
	v, p := newVirtual(), on(t)
	l := p.frozen(v).limiter(ratelimit.Config{Rate: 1, Per: 876000 * time.Hour, Burst: 100_000})
	require.Equal(t, 100_000.0, tokens(t, l))
	require.NoError(t, l.AllowN(bg, 1))
	require.Equal(t, 99_999.0, tokens(t, l))
	ttl := pttl(t, p, l.store.Key())
	require.Greater(t, ttl, 99*365*24*time.Hour)
	for range 9 {
		require.NoError(t, l.AllowN(bg, 10_000))
	}
	require.NoError(t, l.AllowN(bg, 9_999))
	require.Equal(t, 0.0, tokens(t, l), "to the last one")
	wait := waitOf(t, l.AllowN(bg, 1))
	require.InEpsilon(t, (876000 * time.Hour).Seconds(), wait.Seconds(), 1e-9)
	require.Equal(t, time.Duration(1<<63-1), waitOf(t, l.AllowN(bg, 100_000)), "saturated, never negative")
}

// C37 (d): an interval that is no whole number of anything.
func TestC37FractionalExpiry(t *testing.T) {
	p := on(t)
	l := p.limiter(ratelimit.Config{Rate: 7, Burst: 1})
	require.NoError(t, l.AllowN(bg, 1))
	require.GreaterOrEqual(t, pttl(t, p, l.store.Key()), time.Millisecond)
}

// C39: one authority for time, the server's; a node whose clock is wrong starves nobody and mints nothing.
func TestC39NodesWithWrongClocks(t *testing.T) {
	v := newVirtual()
	p := on(t).frozen(v)
	node := func(off time.Duration) *Limiter {
		return p.limiter(ratelimit.Config{Rate: 1, Burst: 10, Clock: clockwork.NewFakeClockAt(start.Add(off))})
	}
	a, b := node(time.Hour), node(-time.Hour)
	require.NoError(t, a.AllowN(bg, 10))
	require.Equal(t, time.Second, waitOf(t, b.AllowN(bg, 1)))
	v.at(1)
	require.NoError(t, b.AllowN(bg, 1))
	require.Equal(t, time.Second, waitOf(t, a.AllowN(bg, 1)))
	for second := 2; second <= 10; second++ {
		v.at(float64(second))
		admitted := 0
		for _, l := range []*Limiter{a, b, b, a} {
			if l.AllowN(bg, 1) == nil {
				admitted++
			}
		}
		require.Equal(t, 1, admitted, "at %d s", second)
	}
	// The same without a virtual clock: what counts is the server's TIME.
	q := on(t)
	ahead := q.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 10, Clock: clockwork.NewFakeClockAt(start.Add(1000 * time.Hour))})
	behind := q.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 10, Clock: clockwork.NewFakeClockAt(start.Add(-1000 * time.Hour))})
	require.NoError(t, ahead.AllowN(bg, 10))
	require.Error(t, behind.AllowN(bg, 1))
	require.Error(t, ahead.AllowN(bg, 1))
}

// Names with braces, colons, NUL, 10 KB, none: each is a bucket of its own.
func TestAwkwardNames(t *testing.T) {
	p := on(t)
	long := make([]byte, 10_000)
	for i := range long {
		long[i] = byte(i)
	}
	names := []string{"", "a", "{a}", "a:b", "a}", "a\x00", "a\x00b", " ", "%", "%7Ba%7D", string(long), string(long[:9_999])}
	for i, name := range names {
		l, err := New(p.client, ratelimit.Config{Name: name, Rate: 1, Per: time.Hour, Burst: i + 1}, p.opts)
		require.NoError(t, err)
		p.closing(l)
		require.NoError(t, l.AllowN(bg, i+1), "%q is full", name)
		require.Error(t, l.AllowN(bg, 1), fmt.Sprintf("%q is empty", name))
	}
}
