package redisbreaker

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// open is a fleet whose circuit opened at 0 for 10 s, and so many members that know.
func open(t *testing.T, cfg breaker.Config, n int) (*fleet, []*member) {
	t.Helper()
	cfg.Window, cfg.OpenFor = breaker.Count(1), 10*time.Second
	f := newFleet(t, cfg)
	f.join().run(1, failure)
	var all []*member
	for range n {
		all = append(all, f.join())
	}
	return f, all
}

func TestOneFailureReopensAndTheOpenTimeGrows(t *testing.T) {
	f, m := open(t, breaker.Config{OpenGrowth: 2, MaxOpenFor: 30 * time.Second}, 2)
	at := 0.0
	for _, next := range []float64{20, 30, 30} {
		at += max(10, m[0].view.Load().wait.Seconds())
		f.to(at - 0.000001)
		m[0].refused()
		f.to(at)
		m[0].begin()(failure)
		require.InDelta(t, next, m[0].refused().Wait.Seconds(), 1e-9)
	}
	f.to(at + 30)
	m[0].begin()(success)
	m[0].run(1, failure)
	require.Equal(t, 10*time.Second, m[0].refused().Wait, "closing begins anew")
}

func TestProbeSuccessesCloseFresh(t *testing.T) {
	f, m := open(t, breaker.Config{Probes: 2, ProbeSuccesses: 3}, 2)
	f.to(10)
	one, two := m[0].begin(), m[1].begin()
	require.Equal(t, breaker.HalfOpen, m[0].refused().State)
	one(success)
	m[0].is(breaker.HalfOpen)
	two(success)
	require.Equal(t, 2, m[1].Snapshot().ProbeSuccesses)
	m[1].begin()(success)
	m[1].is(breaker.Closed)
	require.Equal(t, "3 probes succeeded", m[1].Snapshot().Reason)
	m[0].poll()
	m[0].is(breaker.Closed)
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.Closed}, m[0].route())
}

// A downstream slower than the lease must be able to close its circuit.
func TestLateResultCountsWhileTheEpisodeLasts(t *testing.T) {
	f, m := open(t, breaker.Config{ProbeLease: time.Second}, 1)
	log := &storeLog{}
	f.opts.OnStore = log.hook
	m = append([]*member{f.join()}, m...)
	f.to(10)
	slow := m[0].begin()
	f.to(11)
	second := m[1].begin() // its slot is free for another
	f.to(11.5)
	slow(success)
	m[0].is(breaker.Closed)
	require.Equal(t, []string{"overage"}, log.kinds())
	second(failure) // of the episode that is over
	m[1].poll()
	m[1].is(breaker.Closed)
}

func TestDeadProbesDoNotFillTheKey(t *testing.T) {
	f, m := open(t, breaker.Config{ProbeLease: time.Second}, 1)
	var ends []func(leaf.Outcome)
	for i := range 200 {
		f.to(float64(10 + i))
		ends = append(ends, m[0].begin())
	}
	n, err := f.client.HLen(bg, f.key()).Result()
	require.NoError(t, err)
	require.Less(t, n, int64(80+12))
	ends[0](success) // forgotten: it must not count
	m[0].poll()
	require.Equal(t, "2", f.field("s"))
	ends[199](success)
	require.Equal(t, "0", f.field("s"))
}

func TestDefaultLeaseIsTheOpenTime(t *testing.T) {
	f, m := open(t, breaker.Config{}, 2)
	f.to(10)
	m[0].begin()
	f.to(19.999)
	require.Equal(t, time.Millisecond, m[1].refused().Wait)
	f.to(20)
	m[1].begin()(notRun)
	require.Zero(t, m[0].Lease(), "an explicit one alone")
}

func TestNoLeaseAdmitsEveryone(t *testing.T) {
	f, m := open(t, breaker.Config{ProbeLease: breaker.NoLease, ProbeSuccesses: 3}, 1)
	f.to(10)
	var ends []func(leaf.Outcome)
	for range 5 {
		ends = append(ends, m[0].begin())
	}
	ends[0](notRun)
	ends[1](success)
	ends[2](success)
	m[0].is(breaker.HalfOpen)
	ends[3](success)
	m[0].is(breaker.Closed)
	ends[4](failure)
	m[0].is(breaker.Closed)
}

// NotRun, Ignored and a slow cancelled call give the slot back and say nothing.
func TestNeutralProbesGiveTheSlotBack(t *testing.T) {
	f, m := open(t, breaker.Config{SlowCall: time.Second}, 2)
	f.to(10)
	for _, o := range []leaf.Outcome{
		notRun, {Verdict: leaf.Ignored, Err: errDown}, {Verdict: leaf.CallerCancelled, Err: context.Canceled, Took: time.Hour},
	} {
		m[0].begin()(o)
		require.Equal(t, "2", f.field("s"))
		m[1].begin()(notRun)
	}
}

// A half-open circuit under load does not turn every call into a store call; a slot that this process gives back is free at once.
func TestRefusedProbesDoNotAskAgainAtOnce(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	m := f.join()
	m.run(1, failure)
	f.to(10)
	end := m.begin()
	m.refused()
	before := s.Calls(t, "evalsha", "eval")
	for range 1000 {
		require.Error(t, m.Peek(bg))
		m.refused()
	}
	require.LessOrEqual(t, s.Calls(t, "evalsha", "eval")-before, 2, "the poll's at most")
	end(notRun)
	require.NoError(t, m.Peek(bg))
	m.begin()(notRun)
}

// Section 13, test 15: probes ≤ Probes over processes, and a dead probe's slot is reclaimed.
func TestProbesOverProcesses(t *testing.T) {
	s := redistest.Shared(t)
	prefix := s.Prefix(t)
	b, err := New(s.Client(t), childConfig, Options{Prefix: prefix, Timeout: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { closeIt(t, b) })
	b.run1(t, failure)
	redistest.Eventually(t, "the circuit opens", func() bool { return b.State() != breaker.Closed })

	var all []*redistest.Process
	for range 3 {
		all = append(all, redistest.Spawn(t, "prober", s.Addr, prefix))
	}
	admitted := 0
	var holder *redistest.Process
	for _, p := range all {
		p.Expect(t, "ready")
		p.Send(t, "go")
	}
	for _, p := range all {
		n, err := strconv.Atoi(p.Expect(t, "admitted "))
		require.NoError(t, err)
		if n > 0 {
			holder = p
		}
		admitted += n
	}
	require.Equal(t, childConfig.Probes, admitted, "of 3 processes × 20 calls")

	killed := time.Now()
	holder.Kill()
	redistest.Eventually(t, "the dead probe's slot is free", func() bool {
		p, err := b.Acquire(bg)
		if err == nil {
			_ = p.Settle(bg, success)
		}
		return err == nil
	})
	require.Less(t, time.Since(killed), childConfig.ProbeLease+2*time.Second)
}

var childConfig = breaker.Config{
	Name: "over processes", Window: breaker.Count(1), OpenFor: 50 * time.Millisecond, Probes: 2, ProbeSuccesses: 1, ProbeLease: 2 * time.Second,
}

var _ = redistest.Child("prober", func(self *redistest.Self) {
	client := redis.NewClient(&redis.Options{Addr: self.Args[0]})
	b, err := New(client, childConfig, Options{Prefix: self.Args[1], Timeout: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	self.Say("ready")
	self.In.Scan()
	results := make(chan bool)
	for range 20 {
		go func() {
			_, err := b.Acquire(bg)
			for isOpen(err) { // its time is not over yet
				<-time.After(time.Millisecond)
				_, err = b.Acquire(bg)
			}
			results <- err == nil // never settled
		}()
	}
	n := 0
	for range 20 {
		if <-results {
			n++
		}
	}
	self.Say("admitted %d", n)
	self.In.Scan() // until it is killed
})

func isOpen(err error) bool {
	refusal, ok := errors.AsType[*breaker.OpenError](err)
	return ok && refusal.State == breaker.Open
}

// A lease that came when its caller had gone is given back.
func TestCancelledProbeGivesItsLeaseBack(t *testing.T) {
	s := redistest.Shared(t)
	proxy := redistest.NewProxy(t, s.Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	f, m := open(t, breaker.Config{ProbeLease: time.Hour}, 1)
	f.client = client
	a := f.join()
	f.to(10)
	release := make(chan struct{})
	proxy.OnReply(func(command []string) redistest.Action {
		if command[0] == "evalsha" || command[0] == "eval" {
			<-release
		}
		return redistest.Action{}
	})
	ctx, cancel := context.WithCancelCause(bg)
	cause := errors.New("went away")
	asked := make(chan error)
	go func() {
		p, err := a.Acquire(ctx)
		if err == nil {
			_ = p.Settle(bg, notRun)
		}
		asked <- err
	}()
	redistest.Eventually(t, "the script has run", func() bool { return f.field2(m[0], "s") == "2" })
	cancel(cause)
	err := <-asked
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	m[0].refused()
	close(release)
	redistest.Eventually(t, "the slot is free", func() bool {
		m[0].probes.release()
		p, err := m[0].Acquire(bg)
		if err == nil {
			_ = p.Settle(bg, notRun)
		}
		return err == nil
	})
}

func (f *fleet) field2(m *member, name string) string {
	return m.store.Client().HGet(bg, f.key(), name).Val()
}

// A probe whose OnChange ends the goroutine is nobody's: its lease goes back.
func TestGoexitInAHookHoldsNoLease(t *testing.T) {
	f, _ := open(t, breaker.Config{ProbeLease: time.Hour}, 0)
	m := f.join(func(c *breaker.Config, _ *Options) {
		c.OnChange = func(c breaker.Change) {
			if c.To == breaker.HalfOpen {
				runtime.Goexit()
			}
		}
	})
	f.to(10)
	done := make(chan bool)
	go func() {
		defer func() { done <- false }()
		_, _ = m.Acquire(bg)
		done <- true
	}()
	require.False(t, <-done)
	m.begin()(success)
	m.is(breaker.Closed)
}
