package redisbulkhead

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// crowd counts who is inside, with no help of the store's.
type crowd struct{ inside, most, visits atomic.Int64 }

func (c *crowd) visit() {
	now := c.inside.Add(1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	c.visits.Add(1)
	runtime.Gosched()
	c.inside.Add(-1)
}

// Calls that leave at any moment, refusals, MaxWaits that end, and Updates: nobody too many, no slot and no place lost.
func TestAStormOfCancelsAndUpdatesLosesNoSlotAndAdmitsNobodyTooMany(t *testing.T) {
	const most, calls = 8, 64
	two := fleet(t, 2, waiting(most), Options{LeaseTTL: time.Hour, OnOutage: leaf.FailClosed})
	c := &crowd{}
	var stop atomic.Bool
	var running sync.WaitGroup
	for i := range calls {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 5))
			for !stop.Load() {
				ctx, cancel := context.WithCancel(bg)
				b := two[random.IntN(2)]
				acquire := b.Acquire
				switch random.IntN(8) {
				case 0:
					acquire = b.TryAcquire
				case 1:
					go cancel()
				case 2:
					cancel()
					ctx, cancel = context.WithTimeout(bg, time.Duration(random.IntN(1000))*time.Microsecond)
				}
				p, err := acquire(ctx)
				if err == nil {
					c.visit()
					if err := p.Settle(ctx, leaf.Outcome{}); err != nil {
						t.Errorf("settle: %v", err)
					}
				} else if _, ok := errors.AsType[*leaf.StoreError](err); ok {
					t.Errorf("the store is well: %v", err)
				}
				cancel()
			}
		})
	}
	for i := 0; c.visits.Load() < 20_000; i++ {
		cfg := waiting(1 + i%most)
		cfg.MaxWait = time.Duration(1+i%7) * time.Millisecond
		require.NoError(t, two[i%2].Update(cfg))
		<-time.After(time.Millisecond)
	}
	for _, b := range two {
		require.NoError(t, b.Update(waiting(most)))
	}
	stop.Store(true)
	running.Wait()
	require.LessOrEqual(t, c.most.Load(), int64(most))
	require.Zero(t, c.inside.Load())
	for _, b := range two {
		require.Zero(t, b.Queued())
		redistest.Eventually(t, "every slot is back", func() bool { return gauge(b, "in_use") == 0 && inUse(t, b) == 0 })
		require.Zero(t, gauge(b, "overages"))
	}
	var held []*leaf.Permit
	for range most {
		held = append(held, take(t, two[1]))
	}
	isFull(t, two[0])
	for _, p := range held {
		back(t, p)
	}
}

// kill -9 of the server and Close, while calls come, wait and go: every call is decided, no more than MaxConcurrent are inside where
// the policy admits nobody of its own, and a server without its data makes no difference to that.
func TestAServerKilledInTheMiddleAndACloseDecideEveryCall(t *testing.T) {
	const most, calls = 4, 64
	s := redistest.Start(t)
	opts := Options{LeaseTTL: 2 * time.Second, OnOutage: leaf.FailClosed}
	two := []*Bulkhead{open(t, s.Client(t), waiting(most), opts), open(t, s.Client(t), waiting(most), opts)}
	c := &crowd{}
	var stop atomic.Bool
	var running sync.WaitGroup
	for i := range calls {
		running.Go(func() {
			for !stop.Load() {
				p, err := two[i%2].Acquire(bg)
				if err != nil {
					<-time.After(time.Millisecond)
					continue
				}
				c.visit()
				_ = p.Settle(bg, leaf.Outcome{})
			}
		})
	}
	more := func() {
		before := c.visits.Load()
		redistest.Eventually(t, "calls are admitted", func() bool { return c.visits.Load() > before+500 })
	}
	for range 2 {
		more()
		s.Kill(t)
		s.Restart(t) // empty
	}
	more()
	s.Pause(t)
	redistest.Eventually(t, "it is an outage", func() bool { return two[0].Inspect().State != "" && two[1].Inspect().State != "" })
	s.Resume(t)
	more()
	closed(t, two[0])
	more() // of the other
	stop.Store(true)
	closed(t, two[1])
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("a call was never decided on")
	}
	require.LessOrEqual(t, c.most.Load(), int64(most))
	require.Zero(t, two[0].Queued()+two[1].Queued())
}
