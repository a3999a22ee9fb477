package redisbulkhead

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/stretchr/testify/require"
)

// A process that is slow to fetch what it is owed is not overtaken by one that is fast.
func TestTheLineCountsWhatEachHasHad(t *testing.T) {
	v := newVirtual()
	three := fleet(t, 3, once(4), Options{Now: v.Now, LeaseTTL: time.Hour})
	holder, slow, fast := three[0], three[1], three[2]
	var held []*leaf.Permit
	for range 4 {
		held = append(held, take(t, holder))
	}
	asks := func(b *Bulkhead) int64 {
		v.advance(time.Millisecond)
		turn := &turnCall{tokens: []string{random(), random(), random(), random()}, limit: 4, queued: 100, wait: true}
		return run(t, b, turn).granted
	}
	require.Zero(t, asks(slow))
	require.Zero(t, asks(fast))
	for i, want := range []int64{0, 1, 0, 1} { // the first slot is the slow one's, the second one the fast one's…
		back(t, held[i])
		require.Equal(t, want, asks(fast), "after %d slots came back", i+1)
		require.Zero(t, asks(fast), "asking more often gets no more")
	}
	require.EqualValues(t, 2, asks(slow), "it has lost nothing")
}

func TestASlotWhoseLeaseEndedIsNotHandedOver(t *testing.T) {
	v, heard := newVirtual(), &events{}
	two := fleet(t, 2, waiting(1), Options{Now: v.Now, LeaseTTL: time.Hour, OnStore: heard.hear})
	late := take(t, two[0])
	v.advance(time.Hour)
	held := take(t, two[1])
	out := goAcquire(t, bg, two[0])
	back(t, late)
	redistest.Eventually(t, "the overage is told", func() bool { return heard.of("overage") == 1 })
	require.Empty(t, out)
	require.Equal(t, 1, two[0].Queued())
	require.Equal(t, 1, inUse(t, two[0]))
	back(t, held)
	r := <-out
	require.NoError(t, r.err)
	back(t, r.permit)
}

func TestALateAnswerGivesBackWhatItTookAndWhatItRenewed(t *testing.T) {
	b := fleet(t, 1, once(3), Options{})[0]
	ended := &slot{token: random(), ended: true}
	late := &turnCall{tokens: []string{random()}, renewals: []*slot{ended}, limit: 3, queued: 1}
	reply, err := b.store.Do(bg, redisscript.Call{Op: leaf.OpRecord, Script: turn, Args: late.args(b)})
	require.NoError(t, err)
	require.Equal(t, 2, inUse(t, b))
	b.late(late, reply)
	redistest.Eventually(t, "both are back", func() bool { return inUse(t, b) == 0 })
	require.Zero(t, gauge(b, "overages"))
}

// The store has lost nothing here: it learns of the calls because their process tells it.
func TestTheStoreIsToldOfCallsThatWereAdmittedWhileItWasOutOfReach(t *testing.T) {
	for _, policy := range []leaf.Outage{leaf.FailLocal, leaf.FailOpen} {
		s := redistest.Start(t)
		proxy := redistest.NewProxy(t, s.Addr)
		o := s.Options()
		o.Addr = proxy.Addr
		b := open(t, clientOf(t, o), once(2), Options{Timeout: calm, LeaseTTL: time.Hour, OnOutage: policy})
		other := open(t, s.Client(t), once(2), Options{Timeout: calm, LeaseTTL: time.Hour})
		back(t, take(t, b))
		proxy.Cut()
		p, q := take(t, b), take(t, b)
		require.Equal(t, policy.String(), b.Inspect().State)
		proxy.Mend()
		redistest.Eventually(t, "told", func() bool { return inUse(t, other) == 2 && b.Inspect().State == "" })
		isFull(t, other)
		back(t, p)
		back(t, take(t, other))
		back(t, q)
		require.Equal(t, 0, inUse(t, other))
	}
}

func TestWhoFindsTheDataLostReportsAtOnce(t *testing.T) {
	v := newVirtual()
	b := fleet(t, 1, once(2), Options{Now: v.Now, LeaseTTL: time.Hour})[0]
	p := take(t, b)
	redistest.Shared(t).Do(t, "del", b.store.Key())
	isFull(t, b)
	redistest.Eventually(t, "it has reported", func() bool { return inUse(t, b) == 1 })
	back(t, p)
}

func TestOnAClusterSlotsMoveAndHintsArrive(t *testing.T) {
	c := redistest.StartCluster(t)
	opts := Options{Timeout: calm, LeaseTTL: time.Hour, OnOutage: leaf.FailClosed}
	a, b := open(t, c.Client(t), waiting(1), opts), open(t, c.Client(t), waiting(1), opts)
	pairs := func() {
		held := take(t, a)
		out := goAcquire(t, bg, b)
		back(t, held)
		r := <-out
		require.NoError(t, r.err)
		back(t, r.permit)
	}
	pairs()
	held := take(t, a)
	c.Migrate(t, a.store.Key(), func() {
		_, err := b.TryAcquire(bg)
		require.ErrorIs(t, err, bulkhead.ErrFull)
	})
	_, err := b.TryAcquire(bg)
	require.ErrorIs(t, err, bulkhead.ErrFull, "the permit has moved along")
	back(t, held)
	pairs()
}

// Releases that are in time are not asked for one by one; the one that is late is found among them.
func TestOfTheReleasesTheLateOneIsToldApart(t *testing.T) {
	v := newVirtual()
	b := fleet(t, 1, once(2), Options{Now: v.Now, LeaseTTL: time.Hour})[0]
	take(t, b)
	_, late := latest(b)
	v.advance(40 * time.Minute)
	take(t, b)
	_, timely := latest(b)
	v.advance(30 * time.Minute)
	third := take(t, b) // in the late one's stead
	b.mu.Lock()
	b.releases = []*release{{slot: timely, done: make(chan struct{})}, {slot: late, done: make(chan struct{})}}
	turn := b.compose(time.Now())
	b.releases = nil
	b.mu.Unlock()
	require.Equal(t, late.expires, turn.overdue)
	require.Equal(t, "10", run(t, b, turn).released)
	require.Equal(t, 1, inUse(t, b))
	turn.releases[0].quiet, turn.releases[1].maybe = true, true // nothing of them would be told
	b.mu.Lock()
	b.releases = turn.releases
	turn = b.compose(time.Now())
	b.releases = nil
	b.mu.Unlock()
	require.EqualValues(t, never, turn.overdue)
	require.Equal(t, "11", run(t, b, turn).released)
	back(t, third)
}
