package redisbreaker

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func endGoroutine() { runtime.Goexit() }

// counting counts everything and opens never.
var counting = breaker.Config{
	Name: "counting", Window: breaker.Count(1 << 16), FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never,
}

// storm settles 30 results from 10 goroutines, every third a failure, and waits until they are delivered.
func storm(t *testing.T, b *Breaker) {
	t.Helper()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for i := range 3 {
				p, err := b.Acquire(bg)
				if err != nil {
					t.Error(err)
					return
				}
				_ = p.Settle(bg, []leaf.Outcome{success, failure, success}[i])
			}
		})
	}
	wg.Wait()
	delivered(t, b)
}

// delivered sends what waits until nothing does.
func delivered(t *testing.T, b *Breaker) {
	t.Helper()
	redistest.Eventually(t, "everything is delivered", func() bool {
		for b.flushInTurn(true) {
		}
		b.tell()
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.outbox.sealed == nil && len(b.outbox.open.runs) == 0
	})
}

// Section 13, tests 4 and 6: SCRIPT FLUSH and CLIENT KILL loops, and a proxy that drops replies after execution: what the store
// has counted is what was settled, each result once.
func TestEveryResultCountsOnce(t *testing.T) {
	for what, fault := range map[string]func(*testing.T, *redistest.Server, *redistest.Proxy, <-chan struct{}){
		"5 % lost replies": func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy, _ <-chan struct{}) {
			p.DropShare(0.05, 7, "evalsha", "eval")
		},
		"every second reply lost": func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy, _ <-chan struct{}) {
			p.DropEvery(2, "evalsha", "eval")
		},
		"SCRIPT FLUSH": func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, done <-chan struct{}) {
			loop(done, 2*time.Millisecond, func() { _, _ = s.Try(t, "script", "flush") })
		},
		"CLIENT KILL": func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, done <-chan struct{}) {
			loop(done, 20*time.Millisecond, func() { _, _ = s.Try(t, "client", "kill", "type", "normal", "skipme", "yes") })
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := redistest.Start(t)
			proxy := redistest.NewProxy(t, s.Addr)
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr})
			t.Cleanup(func() { _ = client.Close() })
			b, err := New(client, counting, Options{Timeout: 200 * time.Millisecond, OnOutage: leaf.FailOpen})
			require.NoError(t, err)
			done := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { fault(t, s, proxy, done) })
			const storms, n = 300, 300 * 30
			for range storms {
				storm(t, b)
			}
			close(done)
			wg.Wait()
			require.GreaterOrEqual(t, s.Calls(t, "evalsha", "eval"), storms)
			if strings.Contains(what, "lost") {
				require.Positive(t, proxy.Dropped())
			}
			proxy.OnReply(nil)
			closeIt(t, b)
			check, err := New(s.Client(t), counting, Options{Timeout: 5 * time.Second})
			require.NoError(t, err)
			t.Cleanup(func() { closeIt(t, check) })
			check.run1(t, success)
			delivered(t, check)
			got := check.Snapshot()
			require.Equal(t, [2]int{n + 1, n / 3}, [2]int{got.Calls, got.Failures})
		})
	}
}

func loop(done <-chan struct{}, every time.Duration, f func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			f()
		}
	}
}

// Section 13, test 5: the server stops for 2 s: no call above its budget + 20 ms, and recovery within 1 s.
func TestStoppedServerCostsNoMoreThanTheBudget(t *testing.T) {
	const slack = 20 * time.Millisecond
	s := redistest.Start(t)
	cfg := breaker.Config{Name: "stopped", Window: breaker.Count(1), OpenFor: 20 * time.Millisecond, ProbeLease: 100 * time.Millisecond}
	b, err := New(s.Client(t), cfg, Options{OnOutage: leaf.FailOpen})
	require.NoError(t, err)
	t.Cleanup(func() { closeIt(t, b) })
	b.run1(t, failure)
	redistest.Eventually(t, "the circuit opens", func() bool { return b.view.Load().state == breaker.Open })

	var worst atomic.Int64
	timed := func(f func()) time.Duration {
		began := time.Now()
		f()
		took := time.Since(began)
		for old := worst.Load(); int64(took) > old && !worst.CompareAndSwap(old, int64(took)); old = worst.Load() {
		}
		return took
	}
	noise := lateness(t)
	s.Pause(t)
	stopped := time.Now()
	quick := 0
	for time.Since(stopped) < 2*time.Second {
		var p leaf.Permit
		var err error
		took := timed(func() { p, err = b.Acquire(bg) })
		if err == nil {
			took += timed(func() { _ = p.Settle(bg, failure) })
		}
		if took < time.Millisecond {
			quick++
		}
		<-time.After(time.Millisecond)
	}
	s.Resume(t)
	resumed := time.Now()
	redistest.Eventually(t, "the store is asked again", func() bool { return !b.out.Load() })
	require.Less(t, time.Since(resumed), time.Second)
	late := noise()
	t.Logf("worst call %v, %d calls below 1 ms, recovery %v, timers up to %v late", time.Duration(worst.Load()), quick, time.Since(resumed), late)
	require.Less(t, time.Duration(worst.Load()), 50*time.Millisecond+slack+5*time.Millisecond+late) // 5 ms: redisscript's grace
	require.Greater(t, quick, 100)
}

// lateness measures how late a plain timer is, beside what is tested: that much the machine adds to anything.
func lateness(t *testing.T) (worst func() time.Duration) {
	done := make(chan struct{})
	var most time.Duration
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			began := time.Now()
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, time.Since(began)-5*time.Millisecond)
			}
		}
	})
	stop := sync.OnceFunc(func() { close(done); wg.Wait() })
	t.Cleanup(stop)
	return func() time.Duration { stop(); return most }
}

// Section 13, test 17: OPEN costs no store call, and CLOSED costs the caller none: what is flushed does not grow with the calls.
func TestOpenAndClosedCostNoRoundTrip(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Time(time.Minute), OpenFor: time.Hour}).real()
	m := f.join()
	scripts := func() int { return s.Calls(t, "evalsha", "eval") }

	before, began := scripts(), time.Now()
	const n = 50_000
	for range n {
		m.begin()(success)
	}
	batches := scripts() - before
	require.LessOrEqual(t, batches, int(time.Since(began)/batching)+2)
	t.Logf("closed: %d calls in %v, %d batches: %.5f round trips per call", n, time.Since(began), batches, float64(batches)/n)
	m.sync()
	require.Equal(t, n, m.Snapshot().Calls)

	require.NoError(t, m.Reset(bg))
	m.run(5, failure)
	m.is(breaker.Open)
	before, began = scripts(), time.Now()
	for range n {
		m.refused()
	}
	polls := scripts() - before
	require.LessOrEqual(t, polls, int(time.Since(began)/every)+1)
	t.Logf("open: %d calls in %v, %d polls", n, time.Since(began), polls)
}

func TestNothingIsAllocatedWhereNothingIsAsked(t *testing.T) {
	f := newFleet(t, breaker.Config{OpenFor: time.Hour})
	m := f.join()
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		var p leaf.Permit
		p, _ = m.Acquire(bg)
		_ = p.Settle(bg, success)
	}), 0.5, "now and then a batch")
	require.NoError(t, m.ForceOpen(bg))
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _, _ = m.Acquire(bg) }), 1.5, "the error, now and then a poll")
}

// Section 13, test 20: no memory: a clear NotExecuted error and the policy. A script that has begun to write goes on: then it is
// admitted and recorded.
func TestOutOfMemory(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second, Probes: 2, ProbeSuccesses: 2})
	f.opts.OnOutage = leaf.FailClosed
	log := &storeLog{}
	f.opts.OnStore = log.hook
	m := f.join()
	m.run(1, failure)
	s.Do(t, "config", "set", "maxmemory-policy", "noeviction")
	s.Do(t, "config", "set", "maxmemory", "1")
	f.to(10)
	end := m.begin() // begins the episode, by a write that needs no memory
	_, err := m.Acquire(bg)
	var failed *leaf.StoreError
	require.ErrorAs(t, err, &failed)
	require.True(t, failed.NotExecuted)
	require.True(t, failed.Rejected())
	require.ErrorContains(t, err, "OOM")
	require.Equal(t, []string{"failed"}, log.kinds())
	end(notRun)

	other := f.join(func(c *breaker.Config, _ *Options) { c.Name = "another" })
	other.begin()(failure)
	other.down()
	other.begin()(success) // a closed circuit goes on admitting
	s.Do(t, "config", "set", "maxmemory", "0")
	delivered(t, other.Breaker)
	require.Equal(t, breaker.Open, other.State(), "what waited was told")
}

func TestEvictedKeyIsGivenBack(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: time.Hour})
	m := f.join()
	m.run(1, failure)
	s.Do(t, "config", "set", "maxmemory-policy", "volatile-lru")
	s.Do(t, "config", "set", "maxmemory", "1")
	redistest.Eventually(t, "the key is evicted", func() bool {
		_, _ = s.Try(t, "set", "x", "y", "ex", "100")
		return s.Do(t, "exists", f.key()) == int64(0)
	})
	m.refused()
	s.Do(t, "config", "set", "maxmemory", "0")
	m.poll()
	f.join().is(breaker.Open)
}

func TestClusterAndSentinel(t *testing.T) {
	cfg := breaker.Config{Name: "{odd}:name", Window: breaker.Count(2), MinCalls: 2, OpenFor: 50 * time.Millisecond}
	for what, connect := range map[string]func(*testing.T) redis.UniversalClient{
		"Cluster":  func(t *testing.T) redis.UniversalClient { return redistest.StartCluster(t).Client(t) },
		"Sentinel": func(t *testing.T) redis.UniversalClient { return redistest.StartSentinel(t).Client(t) },
	} {
		t.Run(what, func(t *testing.T) {
			client := connect(t)
			var all [2]*Breaker
			for i := range all {
				b, err := New(client, cfg, Options{Timeout: 2 * time.Second})
				require.NoError(t, err)
				t.Cleanup(func() { closeIt(t, b) })
				all[i] = b
			}
			all[0].run1(t, failure)
			delivered(t, all[0])
			all[1].run1(t, failure)
			redistest.Eventually(t, "the circuit opens", func() bool { return all[1].view.Load().state == breaker.Open })
			redistest.Eventually(t, "a probe is admitted", func() bool {
				_, err := leaf.Do(bg, all[1], func(context.Context) (int, error) { return 1, nil })
				return err == nil
			})
			require.Equal(t, breaker.Closed, all[1].State())
			delivered(t, all[0])
			all[0].run1(t, success)
			redistest.Eventually(t, "the other learns", func() bool { return all[0].view.Load().gen == all[1].view.Load().gen })
		})
	}
}
