package redisbulkhead

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// renew has b tell the store of everything that it holds, and waits until it has.
func renew(t *testing.T, b *Bulkhead) {
	t.Helper()
	b.mu.Lock()
	b.renewAll(time.Now())
	b.run()
	b.mu.Unlock()
	redistest.Eventually(t, "it is told", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.renewals) == 0 && !b.engine.now
	})
}

// Section 13's test 11.
func TestFLUSHALLWithLivePermitsNeverAdmitsMoreThanTheLimit(t *testing.T) {
	s := redistest.Start(t)
	const lease = 3 * time.Second
	prefix := s.Prefix(t)
	opts := Options{Prefix: prefix, Timeout: lease / 3, LeaseTTL: lease}
	two := []*Bulkhead{open(t, s.Client(t), once(4), opts), open(t, s.Client(t), once(4), opts)}
	var all []*leaf.Permit
	for i := range 4 {
		all = append(all, take(t, two[i%2]))
	}
	s.Do(t, "flushall")
	began := time.Now()
	redistest.Eventually(t, "one and a half leases are over, and nobody was admitted", func() bool {
		isFull(t, two[0])
		isFull(t, two[1])
		require.LessOrEqual(t, inUse(t, two[0]), 4)
		return time.Since(began) > lease*3/2
	})
	require.Equal(t, 4, inUse(t, two[0]), "every living process has reported")
	back(t, all[0])
	all[0] = take(t, two[1])
	isFull(t, two[0])
	for _, p := range all {
		back(t, p)
	}
	require.Zero(t, gauge(two[0], "overages")+gauge(two[1], "overages"), "lost, but not late")
}

// Section 13's test 11, with processes that are at work.
func TestFLUSHALLLoopsNeverAdmitMoreThanTheLimit(t *testing.T) {
	s := redistest.Start(t)
	o, path := newOracle(t)
	var all []*redistest.Process
	for i := range 2 {
		all = append(all, redistest.Spawn(t, "worker", workload{addr: s.Addr, prefix: "loop", oracle: path, process: i,
			goroutines: 40, max: 4, timeout: 200 * time.Millisecond, lease: 600 * time.Millisecond}.args()...))
	}
	for _, p := range all {
		p.Expect(t, "ready")
	}
	for range 4 {
		before := o.ops[0].Load() + o.ops[1].Load()
		s.Do(t, "flushall")
		redistest.Eventually(t, "the quarantine ends", func() bool { return o.ops[0].Load()+o.ops[1].Load() > before+1000 })
	}
	for _, p := range all {
		p.Send(t, "stop")
	}
	for _, p := range all {
		p.Expect(t, "done")
		p.Wait(t)
	}
	require.LessOrEqual(t, o.most.Load(), int64(4))
}

func TestTheQuarantineLastsAThirdOfTheLeaseAndCountsWhoReports(t *testing.T) {
	v := newVirtual()
	s := redistest.Shared(t)
	two := fleet(t, 2, once(3), Options{Now: v.Now, LeaseTTL: time.Hour})
	p := take(t, two[0])
	back(t, take(t, two[1])) // it has seen the key
	s.Do(t, "del", two[0].store.Key())
	for _, d := range []time.Duration{0, time.Minute, 19*time.Minute - time.Microsecond} {
		v.advance(d)
		isFull(t, two[1])
	}
	require.Equal(t, 0, inUse(t, two[1]), "the quarantine is no permit")
	renew(t, two[0])
	v.advance(time.Microsecond)
	require.Equal(t, 1, inUse(t, two[1]))
	q, r := take(t, two[1]), take(t, two[1])
	isFull(t, two[1])
	for _, x := range []*leaf.Permit{p, q, r} {
		back(t, x)
	}
	require.Zero(t, gauge(two[0], "overages"))
}

func TestAKeyThatNobodyHasSeenAdmitsAtOnce(t *testing.T) {
	v := newVirtual()
	b := fleet(t, 1, once(1), Options{Now: v.Now, LeaseTTL: time.Hour})[0]
	back(t, take(t, b))
	redistest.Shared(t).Do(t, "del", b.store.Key())
	v.advance(time.Hour) // a lease ago: it may have ended by itself
	back(t, take(t, b))
}

func failClosed(t *testing.T, client redis.UniversalClient) *Bulkhead {
	return open(t, client, once(2), Options{OnOutage: leaf.FailClosed, Timeout: calm})
}

// Section 13's test 20.
func TestOutOfMemoryIsNotExecutedAndThePolicyAndReleasesGoThrough(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Config: []string{"maxmemory-policy noeviction"}})
	b := failClosed(t, s.Client(t))
	local := open(t, s.Client(t), once(2), Options{Timeout: calm, Instances: 2})
	p := take(t, b)
	s.Do(t, "config", "set", "maxmemory", "1")
	_, err := b.Acquire(bg)
	e := storeError(t, err)
	require.True(t, e.NotExecuted, "%v", err)
	require.Contains(t, err.Error(), "OOM")
	q := take(t, local)
	_, err = local.Acquire(bg)
	require.ErrorIs(t, err, bulkhead.ErrFull, "the share is one")
	require.Equal(t, 1, inUse(t, b))
	back(t, p)
	require.Equal(t, 0, inUse(t, b))
	back(t, q)
	s.Do(t, "config", "set", "maxmemory", "0")
	back(t, take(t, b))
}

// Section 13's test 20.
func TestEvictionIsALossOfDataAndAdmitsNobodyTooMany(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Config: []string{"maxmemory-policy volatile-lru"}})
	v := newVirtual()
	opts := Options{Now: v.Now, LeaseTTL: time.Hour, Timeout: calm, OnOutage: leaf.FailClosed}
	b := open(t, s.Client(t), once(2), opts)
	p, q := take(t, b), take(t, b)
	s.Do(t, "config", "set", "maxmemory", "1")
	_, _ = s.Try(t, "set", "other", strings.Repeat("x", 100), "ex", 100) // makes room, or tries to
	redistest.Eventually(t, "the key is evicted", func() bool { return s.Do(t, "exists", b.store.Key()).(int64) == 0 })
	_, err := b.Acquire(bg)
	require.True(t, storeError(t, err).NotExecuted, "%v", err)
	s.Do(t, "config", "set", "maxmemory", "0")
	isFull(t, b)
	renew(t, b)
	v.advance(20 * time.Minute)
	isFull(t, b)
	back(t, p)
	back(t, take(t, b))
	back(t, q)
}

func TestKeysThatSomethingElseWroteAreAClearErrorAndThePolicy(t *testing.T) {
	s := redistest.Start(t)
	for what, write := range map[string][]any{
		"string": {"set", "", "1"}, "list": {"rpush", "", "1"}, "hash": {"hset", "", "a", "1"}, "set": {"sadd", "", "a"},
		"sorted set": {"zadd", "", "1e300", "a"}, "infinite": {"zadd", "", "inf", "a", "-inf", "b"},
	} {
		b := open(t, s.Client(t), bulkhead.Config{Name: what, MaxConcurrent: 2}, Options{OnOutage: leaf.FailClosed, Timeout: calm})
		write[1] = b.store.Key()
		s.Do(t, write...)
		_, err := b.Acquire(bg)
		e := storeError(t, err)
		require.Regexp(t, "WRONGTYPE|no bulkhead wrote", e.Error(), what)
		require.True(t, e.NotExecuted, what)
		_, err = b.InUse(bg)
		require.Regexp(t, "WRONGTYPE|no bulkhead wrote", storeError(t, err).Error(), what)
		s.Do(t, "del", b.store.Key())
		back(t, take(t, b))
	}
}

func TestServersThatRefuseAreAClearErrorAndThePolicy(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Password: "right"})
	s.Do(t, "acl", "setuser", "nolua", "on", ">x", "~*", "&*", "+@all", "-evalsha", "-eval")
	wrong, nolua := s.Options(), s.Options()
	wrong.Password = "wrong"
	nolua.Username, nolua.Password = "nolua", "x"
	for what, o := range map[string]*redis.Options{"WRONGPASS": wrong, "NOPERM": nolua} {
		b := failClosed(t, clientOf(t, o))
		_, err := b.Acquire(bg)
		require.True(t, storeError(t, err).NotExecuted, "%v", err)
		require.Contains(t, err.Error(), what)
	}
	plainToTLS := redistest.Start(t, redistest.Options{TLS: true}).Options()
	plainToTLS.TLSConfig, plainToTLS.Dialer = nil, nil
	b := open(t, clientOf(t, plainToTLS), once(1), Options{OnOutage: leaf.FailClosed})
	_, err := b.Acquire(bg)
	storeError(t, err)
}

func TestANameIsTheInstanceWhateverItHolds(t *testing.T) {
	s := redistest.Shared(t)
	client, prefix := s.Client(t), s.Prefix(t)
	names := []string{"", "%", "{", "}", "{}", "a:b", "a{b}", "a\x00b", "a b", "é", strings.Repeat("x", 10<<10), strings.Repeat("x", 10<<10) + "y"}
	var all []*leaf.Permit
	for _, name := range names {
		cfg := bulkhead.Config{Name: name, MaxConcurrent: 1}
		all = append(all, take(t, open(t, client, cfg, Options{Prefix: prefix, Timeout: calm}))) // nobody else's slot
		_, err := open(t, client, cfg, Options{Prefix: prefix, Timeout: calm}).Acquire(bg)
		require.ErrorIs(t, err, bulkhead.ErrFull, fmt.Sprintf("%.20q", name))
	}
	for _, p := range all {
		back(t, p)
	}
}

// Clocks of the processes do not matter: C39 for leases.
func TestLeasesAreOfTheServersTime(t *testing.T) {
	b := fleet(t, 1, once(1), Options{LeaseTTL: time.Hour})[0]
	p := take(t, b)
	server := redistest.Shared(t).Do(t, "time").([]any)
	_, held := latest(b)
	ends := redistest.Shared(t).Do(t, "zscore", b.store.Key(), held.token)
	var now, end float64
	_, err := fmt.Sscan(fmt.Sprint(server[0], " ", ends), &now, &end)
	require.NoError(t, err)
	require.InDelta(t, now+3600, end/1e6, 30)
	back(t, p)
}
