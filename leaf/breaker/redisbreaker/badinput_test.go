package redisbreaker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestNewNamesEveryBadField(t *testing.T) {
	_, err := New(nil, breaker.Config{MinCalls: -1, Window: breaker.Count(0)}, Options{
		Timeout: -1, OnOutage: 9, IdleTTL: -2, MinReporters: -3, Prefix: strings.Repeat("x", 257),
	})
	require.Error(t, err)
	for _, want := range []string{
		"MinCalls is -1", "Window is count(0)", "Timeout is -1ns", "OnOutage is Outage(9)", "IdleTTL is -2ns", "MinReporters is -3",
		"client is nil", "Prefix is 257",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = New((*redis.Client)(nil), breaker.Config{}, Options{})
	require.ErrorContains(t, err, "client is nil")
}

func TestConfigIsCompleteAndUpdateKeepsState(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(10), MinCalls: 4, Consecutive: breaker.Off, OpenFor: 10 * time.Second})
	m := f.join()
	require.Equal(t, 0.5, m.Config().FailureRate)
	require.NotNil(t, m.Config().OnChange)
	m.run(4, success)
	m.run(3, failure)
	m.is(breaker.Closed)
	cfg := m.Config()
	cfg.FailureRate, cfg.OpenFor = 0.2, time.Minute
	require.NoError(t, m.Update(cfg))
	m.is(breaker.Closed) // it trips nothing by itself
	m.run(1, success)
	m.is(breaker.Open)
	require.Equal(t, time.Minute, m.refused().Wait)

	cfg.Name = "another"
	require.ErrorContains(t, m.Update(cfg), `Name is "another"`)
	cfg.Name = m.Config().Name
	cfg.MinCalls = -1
	require.ErrorContains(t, m.Update(cfg), "MinCalls is -1")
	require.Equal(t, 4, m.Config().MinCalls)
}

func TestOptionalSides(t *testing.T) {
	f := newFleet(t, breaker.Config{ProbeLease: time.Minute, SlowCall: time.Second})
	m := f.join()
	require.Equal(t, time.Minute, m.Lease())
	require.True(t, m.WantsTook())
	c, used := m.Clock()
	require.Nil(t, c)
	require.True(t, used)
	p, err := m.TryAcquire(bg)
	require.NoError(t, err)
	require.NoError(t, p.Settle(bg, notRun))
}

// Keys of a wrong type and fields that somebody else wrote: a clear error or the policy, never a panic, never an endless open or
// admission.
func TestForeignKeys(t *testing.T) {
	for _, write := range [][]any{{"set", "1"}, {"lpush", "1"}, {"sadd", "1"}, {"zadd", "1", "x"}} {
		f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: time.Hour})
		args := append([]any{write[0], f.key()}, write[1:]...)
		require.NoError(t, f.client.Do(bg, args...).Err())
		log := &storeLog{}
		f.opts.OnStore = log.hook
		m := f.join()
		m.begin()(failure)
		redistest.Eventually(t, "the local breaker takes over", func() bool { return m.State() == breaker.Open })
		require.Equal(t, []string{"failed"}, log.kinds())
		log.mu.Lock()
		require.ErrorContains(t, log.events[0].Err, "WRONGTYPE")
		log.mu.Unlock()
		require.ErrorContains(t, m.ForceOpen(bg), "WRONGTYPE")
	}
	for _, junk := range []string{"", "x", "-1", "nan", "inf", "1e400", "0x10", "1 2 3 4", strings.Repeat("9", 400), "\x00\xff"} {
		for state := range 4 {
			f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
			for i, name := range strings.Fields("f g v o w t n k x y z c b0@0/1 ring@1/0 p:x r:x p: d:") {
				require.NoError(t, f.client.HSet(bg, f.key(), name, junk, "s", state).Err(), i)
			}
			m := f.join()
			p, err := m.Acquire(bg)
			if err == nil {
				require.NoError(t, p.Settle(bg, failure))
				m.sync()
			}
			require.NoError(t, m.Reset(bg))
			m.run(1, failure)
			m.is(breaker.Open)
		}
	}
}

// A server's clock that goes back: an opening, a lease and results in the future are void, as in the local breaker.
func TestServersClockGoesBackAnHour(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second, ProbeLease: time.Minute})
	a, b := f.join(), f.join()
	f.to(7200)
	a.run(1, failure)
	b.poll()
	gen := f.field("g")
	f.to(3600)
	a.begin() // hangs
	require.Equal(t, "clock went back", a.Snapshot().Reason)
	require.Greater(t, f.field("g"), gen, "a generation never goes back")
	require.Equal(t, breaker.HalfOpen, b.refused().State)
	f.to(10)
	b.begin()(success)
	b.is(breaker.Closed)

	f = newFleet(t, breaker.Config{MinCalls: 3, Consecutive: breaker.Off, Window: breaker.Time(10 * time.Second)})
	m := f.join()
	f.to(7200)
	m.run(2, failure)
	f.to(3600)
	m.run(1, failure)
	m.counts(1, 1)
	m.run(2, failure)
	m.is(breaker.Open)
}

// A server that lets nobody run scripts, refuses the password, or speaks another protocol: the policy, and an error that says so.
func TestServersThatRefuse(t *testing.T) {
	for what, row := range map[string]struct {
		start  redistest.Options
		change func(*redis.Options)
		want   string
	}{
		"no Lua":         {start: redistest.Options{Config: []string{`rename-command EVAL ""`, `rename-command EVALSHA ""`}}, want: "unknown command"},
		"wrong password": {start: redistest.Options{Password: "right"}, change: func(o *redis.Options) { o.Password = "wrong" }, want: "WRONGPASS"},
		"no password":    {start: redistest.Options{Password: "right"}, change: func(o *redis.Options) { o.Password = "" }, want: "unauthenticated"},
		"TLS mismatch":   {start: redistest.Options{TLS: true}, change: func(o *redis.Options) { o.TLSConfig = nil }, want: ""},
	} {
		t.Run(what, func(t *testing.T) {
			s := redistest.Start(t, row.start)
			o := s.Options()
			if row.change != nil {
				row.change(o)
			}
			client := redis.NewClient(o)
			t.Cleanup(func() { _ = client.Close() })
			log := &storeLog{}
			b, err := New(client, breaker.Config{Window: breaker.Count(1), OpenFor: time.Hour}, Options{OnStore: log.hook, Timeout: time.Second})
			require.NoError(t, err)
			t.Cleanup(func() { closeIt(t, b) })
			b.run1(t, failure)
			redistest.Eventually(t, "the local breaker takes over", func() bool { return b.State() == breaker.Open })
			require.Equal(t, []string{"failed"}, log.kinds())
			log.mu.Lock()
			require.ErrorContains(t, log.events[0].Err, row.want)
			log.mu.Unlock()
			var failed *leaf.StoreError
			require.ErrorAs(t, b.ForceOpen(bg), &failed, fmt.Sprint(failed))
		})
	}
}
