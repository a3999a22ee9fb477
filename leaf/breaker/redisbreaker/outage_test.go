package redisbreaker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/stretchr/testify/require"
)

// storeLog is what OnStore told.
type storeLog struct {
	mu     sync.Mutex
	events []leaf.StoreEvent
}

func (l *storeLog) hook(_ context.Context, e leaf.StoreEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *storeLog) kinds() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		all = append(all, e.Kind)
	}
	return all
}

// outage is a member of a server that will be killed.
func outage(t *testing.T, policy leaf.Outage, cfg breaker.Config) (*redistest.Server, *fleet, *member, *storeLog) {
	t.Helper()
	s := redistest.Start(t)
	f := newFleetOn(t, s, cfg)
	f.opts.OnOutage = policy
	log := &storeLog{}
	f.opts.OnStore = log.hook
	return s, f, f.join(), log
}

func (m *member) down() {
	m.t.Helper()
	redistest.Eventually(m.t, "the outage is noticed", m.out.Load)
}

// The local breaker decides in FailLocal outages alone, and has been fed all along.
func TestFailLocalLetsTheLocalBreakerDecide(t *testing.T) {
	s, f, _, log := outage(t, leaf.FailLocal, breaker.Config{Consecutive: 3, OpenFor: time.Hour})
	f.opts.MinReporters = 2
	m := f.join()
	m.run(3, failure)
	m.is(breaker.Closed) // the fleet's, though the local one would refuse
	require.Equal(t, breaker.Open, m.local.State())
	require.NoError(t, m.Peek(bg))

	s.Kill(t)
	m.begin()(success)
	m.down()
	m.is(breaker.Open)
	require.Error(t, m.Peek(bg))
	require.Equal(t, breaker.Open, m.refused().State)
	require.Equal(t, breaker.Open.String(), m.Inspect().State)
	require.Equal(t, "billing", m.Snapshot().Name)

	s.Restart(t)
	redistest.Eventually(t, "the fleet decides again", func() bool { return m.State() == breaker.Closed })
	m.begin()(notRun)
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open, breaker.Closed}, m.route())
	require.Equal(t, []string{"failed", "recovered"}, log.kinds())
}

func TestFailLocalTripsByItself(t *testing.T) {
	s, _, m, _ := outage(t, leaf.FailLocal, breaker.Config{Consecutive: 3, OpenFor: time.Hour})
	s.Kill(t)
	m.begin()(failure)
	m.down()
	m.begin()(failure)
	m.begin()(failure)
	m.is(breaker.Open)
	m.refused()
}

// In an outage what is known of an open circuit stays in force, under every policy; when its time is over, the policy decides.
func TestKnownOpenHoldsInAnOutage(t *testing.T) {
	for _, policy := range []leaf.Outage{leaf.FailLocal, leaf.FailOpen, leaf.FailClosed} {
		t.Run(policy.String(), func(t *testing.T) {
			s, f, m, _ := outage(t, policy, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
			f.to(0)
			m.run(1, failure)
			require.NoError(t, m.local.Reset(bg))
			s.Kill(t)
			m.poll()
			m.down()
			f.to(9.9)
			require.Equal(t, 100*time.Millisecond, m.refused().Wait)
			f.to(10)
			p, err := m.Acquire(bg)
			if policy == leaf.FailClosed { // "refuses only where a probe lease cannot be had"
				var failed *leaf.StoreError
				require.ErrorAs(t, err, &failed)
				require.True(t, failed.Rejected())
				require.True(t, failed.NotExecuted)
				require.Equal(t, leaf.OpAdmit, failed.Op)
				return
			}
			require.NoError(t, err)
			require.NoError(t, p.Settle(bg, success))
		})
	}
}

func TestFailClosedAdmitsWhileClosed(t *testing.T) {
	s, _, m, _ := outage(t, leaf.FailClosed, breaker.Config{})
	s.Kill(t)
	for range 100 {
		m.begin()(success)
	}
	m.down()
	m.begin()(failure)
}

func TestForceOpenHoldsInAnOutage(t *testing.T) {
	for _, policy := range []leaf.Outage{leaf.FailLocal, leaf.FailOpen, leaf.FailClosed} {
		s, f, m, _ := outage(t, policy, breaker.Config{})
		require.NoError(t, m.ForceOpen(bg))
		s.Kill(t)
		m.poll()
		m.down()
		f.to(1e6)
		require.Zero(t, m.refused().Wait)
		require.True(t, m.Snapshot().Forced)
	}
}

// Section 13, test 18: admit failure: fn not called; record failure: result unchanged.
func TestStoreFailuresNeverTouchResults(t *testing.T) {
	s, f, m, _ := outage(t, leaf.FailClosed, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second, ProbeLease: time.Hour})
	m.run(1, failure)
	f.to(10)
	ran := 0
	call := func(err error) (int, error) {
		return leaf.Do(bg, m, func(context.Context) (int, error) {
			ran++
			s.Kill(t)
			return 7, err
		})
	}
	v, err := call(nil)
	require.NoError(t, err)
	require.Equal(t, 7, v)
	require.Equal(t, 1, ran)
	_, err = call(nil)
	var failed *leaf.StoreError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, ran, "fn not called")

	s.Restart(t)
	redistest.Eventually(t, "a probe is admitted again", func() bool { _, err := call(errDown); return err == errDown })
}

// A probe's record that fails says so to whoever settles.
func TestProbeRecordFailureIsSettlesError(t *testing.T) {
	s, f, m, _ := outage(t, leaf.FailLocal, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	m.run(1, failure)
	f.to(10)
	p, err := m.Acquire(bg)
	require.NoError(t, err)
	s.Kill(t)
	var failed *leaf.StoreError
	require.ErrorAs(t, p.Settle(bg, success), &failed)
	require.Equal(t, leaf.OpRecord, failed.Op)
	require.False(t, failed.Rejected())
}

// A store that cannot be asked is no error of New's, which learns the state as soon as it can.
func TestNewWithoutAStore(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: time.Hour})
	f.join().run(1, failure)
	s.Pause(t)
	f.opts.Timeout = 0
	began := time.Now()
	m := f.join()
	require.Less(t, time.Since(began), time.Second, "50 ms, and not go-redis's 3 s, on a busy machine")
	m.is(breaker.Closed)
	s.Resume(t)
	redistest.Eventually(t, "it learns", func() bool { return m.State() == breaker.Open })
}

// What cannot be delivered is not told later, when it is not true any more.
func TestOldResultsAreDropped(t *testing.T) {
	s, f, _, _ := outage(t, leaf.FailOpen, breaker.Config{FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
	f.opts.Timeout = 50 * time.Millisecond
	m := f.join()
	s.Pause(t)
	m.begin()(failure)
	m.down()
	m.Breaker.mu.Lock()
	require.NotNil(t, m.outbox.sealed)
	m.outbox.sealed.began = m.outbox.sealed.began.Add(-fresh - 1)
	m.outbox.open.add('1')
	m.outbox.open.began = m.outbox.open.began.Add(-fresh - 1)
	m.outbox.open.gen = m.view.Load().gen
	m.Breaker.mu.Unlock()
	m.begin()(success)
	m.Breaker.mu.Lock()
	require.Equal(t, []run{{'0', 1}}, m.outbox.open.runs)
	m.Breaker.mu.Unlock()
}

// Alternating results that cannot be delivered take no more than so much memory.
func TestUndeliverableResultsAreBounded(t *testing.T) {
	var b batch
	for i := range 3 * mostRuns {
		b.add(byte('0' + i%2))
	}
	require.LessOrEqual(t, len(b.runs), mostRuns)
	require.Equal(t, run{'1', 1}, b.runs[len(b.runs)-1], "the last ones stay")
}

func TestHookPanicsArriveAtTheNextAcquire(t *testing.T) {
	s, f, _, _ := outage(t, leaf.FailLocal, breaker.Config{Window: breaker.Count(1)})
	f.opts.OnStore = func(context.Context, leaf.StoreEvent) { panic("OnStore") }
	m := f.join(func(c *breaker.Config, _ *Options) { c.OnChange = func(breaker.Change) { panic("OnChange") } })
	m.run(1, failure)
	redistest.Eventually(t, "the flusher has told, if it was first", func() bool { return m.panics.Load() != nil })
	require.PanicsWithValue(t, "OnChange", func() { _, _ = m.Acquire(bg) })
	m.refused()
	s.Kill(t)
	m.poll()
	require.PanicsWithValue(t, "OnStore", func() { _, _ = m.Acquire(bg) })
}

// A hook that ends the goroutine of a flush or a poll ends no more than that.
func TestGoexitInAHookEndsNothingElse(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	told := make(chan breaker.Change, 16)
	m := f.join(func(c *breaker.Config, _ *Options) {
		c.OnChange = func(c breaker.Change) { defer endGoroutine(); told <- c }
	})
	for range 2 {
		m.begin()(failure) // the flusher dies
		require.Equal(t, breaker.Open, (<-told).To)
		other := f.join()
		require.NoError(t, other.Reset(bg))
		require.Equal(t, breaker.Closed, (<-told).To) // by the poll, which dies
	}
}
