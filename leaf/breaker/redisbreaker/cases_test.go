package redisbreaker

import (
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// C39: the server's clock is the only one; nodes whose own are an hour ahead or behind change nothing.
func TestC39EachNodesOwnClockChangesNothing(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	node := func(ahead time.Duration) *member {
		return f.join(func(c *breaker.Config, _ *Options) { c.Clock = clockwork.NewFakeClockAt(epoch.Add(ahead)) })
	}
	a, b, c := node(time.Hour), node(-time.Hour), node(9*time.Second)
	f.to(0)
	a.run(1, failure)
	a.is(breaker.Open)
	for _, m := range []*member{b, c} {
		m.poll()
		m.is(breaker.Open)
	}
	f.to(5)
	require.Equal(t, 5*time.Second, c.refused().Wait)
	f.to(10)
	b.begin()(success)
	b.is(breaker.Closed)
}

// C40: constructing is a read, never a write; the store is the truth.
func TestC40JoiningChangesNothing(t *testing.T) {
	f := newFleet(t, breaker.Config{MinCalls: 5, OpenFor: 10 * time.Second})
	a := f.join()
	f.to(0)
	a.run(5, failure)
	a.is(breaker.Open)
	f.to(3)
	b := f.join()
	b.is(breaker.Open)
	f.to(3.1)
	require.Equal(t, 6900*time.Millisecond, b.refused().Wait)
	f.to(6)
	f.join()
	f.to(9.99)
	b.refused()
	f.to(10)
	b.begin()(success)
	b.is(breaker.Closed)
}

func TestC40TheFifthFailureFromANewcomerTrips(t *testing.T) {
	f := newFleet(t, breaker.Config{MinCalls: 5, OpenFor: 10 * time.Second})
	f.join().run(4, failure)
	d := f.join()
	d.is(breaker.Closed)
	d.run(1, failure)
	d.is(breaker.Open)
	require.Equal(t, "failure rate 5/5", d.Snapshot().Reason)
}

func TestC40NamesShareNothing(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1)})
	named := func(name string) *member { return f.join(func(c *breaker.Config, _ *Options) { c.Name = name }) }
	names := []string{"x", "", "{x}", "x:y", "x}", "%", "\x00", string(make([]byte, 10<<10))}
	for i, name := range names {
		named(name).run(1, failure)
		for j, other := range names {
			want := breaker.Closed
			if j <= i {
				want = breaker.Open
			}
			require.Equal(t, want, named(other).State(), "%.10q after %.10q", other, name)
		}
	}
}

// C41: the probe's slot is the fleet's, its lease bounds a hung one, and only the present generation's results count.
func TestC41OneProbeForTheFleetWithALease(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second, ProbeLease: 5 * time.Second})
	var all [5]*member
	for i := range all {
		all[i] = f.join()
	}
	a := all[0]
	f.to(0)
	a.run(1, failure)
	for _, m := range all {
		m.poll()
		m.is(breaker.Open)
	}

	f.to(10)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var hung []*leaf.Permit
	var winner *member
	for _, m := range all {
		wg.Go(func() {
			p := new(leaf.Permit)
			var err error
			if *p, err = m.Acquire(bg); err == nil {
				mu.Lock()
				hung, winner = append(hung, p), m
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, hung, 1, "exactly 1 of 5 reaches fn")
	var others []*member
	for _, m := range all {
		if m != winner {
			others = append(others, m)
		}
	}
	b, c, d := others[0], others[1], others[2]
	f.to(14.9)
	refusal := b.refused()
	require.Equal(t, breaker.HalfOpen, refusal.State)
	require.Equal(t, 100*time.Millisecond, refusal.Wait)
	f.to(15.1)
	end := b.begin()
	f.to(15.2)
	end(success)
	b.is(breaker.Closed)
	f.to(15.3)
	c.begin()(success)
	c.is(breaker.Closed)
	f.to(16)
	require.NoError(t, hung[0].Settle(bg, failure), "a stale token is ignored")
	winner.is(breaker.Closed)
	c.sync()
	c.counts(1, 0)
	f.to(17)
	d.begin()(success)
	d.is(breaker.Closed)
}
