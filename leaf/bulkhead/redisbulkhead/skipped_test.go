package redisbulkhead

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/stretchr/testify/require"
)

// A turn asks for those at the end of the queue who have not been refused. One who waits from the start, since the answer is
// known, must not hide one in front of him who still asks: that one would be left to the outage policy on a store that is well.
func TestNobodyWhoAsksStandsBeforeOneWhoWaits(t *testing.T) {
	for _, policy := range []leaf.Outage{leaf.FailLocal, leaf.FailClosed} {
		t.Run(policy.String(), func(t *testing.T) {
			s := redistest.Shared(t)
			c := s.Client(t)
			g := redistest.NewGate(c)
			b := open(t, c, waiting(4), Options{Prefix: s.Prefix(t), Timeout: 200 * time.Millisecond, OnOutage: policy})
			acquire := func() chan *leaf.Permit {
				got := make(chan *leaf.Permit, 1)
				go func() {
					if p, err := b.Acquire(bg); err == nil {
						got <- &p
					} else {
						got <- nil
					}
				}()
				return got
			}
			queued := func(n int) {
				redistest.Eventually(t, "the queue", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.queue.n == n })
			}
			var held []*leaf.Permit
			for range 4 {
				held = append(held, <-acquire())
			}
			var first []chan *leaf.Permit
			for i := range 3 {
				first = append(first, acquire())
				registered(t, b, i+1)
			}
			opened, shut := g.Shut()
			<-shut // a poll is under way
			asks := acquire()
			queued(4)
			back(t, held[0]) // handed to the first two
			back(t, held[1])
			queued(2)
			behind := acquire()
			queued(3)
			opened()
			before := g.Commands()
			<-time.After(500 * time.Millisecond) // beyond twice the timeout, at which the policy would decide
			require.Less(t, g.Commands()-before, int64(60), "a poller, not a loop")
			require.Equal(t, 4, inUse(t, b))
			require.Empty(t, asks)
			require.Empty(t, behind)
			for _, p := range []*leaf.Permit{held[2], held[3], <-first[0], <-first[1]} {
				back(t, p)
			}
			for _, got := range []chan *leaf.Permit{first[2], asks, behind} {
				p := <-got
				require.NotNil(t, p, "refused by the outage policy while the store was well")
				back(t, p)
			}
		})
	}
}

// Nothing is arranged but a burst behind the only slot.
func TestABurstBehindAHeldSlotAdmitsNobody(t *testing.T) {
	s := redistest.Shared(t)
	for range 15 {
		b := open(t, s.Client(t), bulkhead.Config{Name: "db", MaxConcurrent: 1, MaxWait: 150 * time.Millisecond}, Options{Prefix: s.Prefix(t)})
		p := take(t, b)
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for i := range 100 {
			wg.Go(func() {
				<-time.After(time.Duration(i) * 20 * time.Microsecond)
				if q, err := b.Acquire(bg); err == nil {
					admitted.Add(1)
					_ = q.Settle(bg, leaf.Outcome{})
				}
			})
		}
		wg.Wait()
		require.Zero(t, admitted.Load())
		back(t, p)
	}
}

// Each of many permits that come too late is told of; nobody waits for a hook that is slow.
func TestASlowHookOfManyOveragesKeepsNobodyWaiting(t *testing.T) {
	s, v := redistest.Shared(t), newVirtual()
	stop := make(chan struct{})
	var told atomic.Int64
	b := open(t, s.Client(t), bulkhead.Config{Name: "db", MaxConcurrent: 128}, Options{
		Prefix: s.Prefix(t), Now: v.Now, LeaseTTL: time.Hour, OnOutage: leaf.FailClosed,
		OnStore: func(context.Context, leaf.StoreEvent) { <-stop; told.Add(1) },
	})
	var all []*leaf.Permit
	for range 128 {
		all = append(all, take(t, b))
	}
	v.advance(2 * time.Hour)
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() { _ = p.Settle(bg, leaf.Outcome{}) })
	}
	wg.Wait()
	p, err := b.TryAcquire(bg)
	require.NoError(t, err, "the store is well, and empty")
	back(t, &p)
	close(stop)
	redistest.Eventually(t, "all are told of", func() bool { return told.Load() == 128 })
	require.Equal(t, 128.0, gauge(b, "overages"))
}
