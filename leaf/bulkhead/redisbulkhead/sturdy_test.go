package redisbulkhead

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// More is on its way back than one turn holds, and the store is gone: Close tries once, and ends.
func TestCloseEndsThoughMuchIsOnItsWayToAStoreThatIsGone(t *testing.T) {
	s := redistest.Start(t)
	b, err := New(s.Client(t), once(3*mostInTurn), Options{OnOutage: leaf.FailClosed})
	require.NoError(t, err)
	var permits []*leaf.Permit
	for range 2*mostInTurn + 1 {
		permits = append(permits, take(t, b))
	}
	s.Kill(t)
	for _, p := range permits {
		require.Error(t, p.Settle(bg, leaf.Outcome{}))
	}
	ctx, cancel := context.WithTimeout(bg, 5*time.Second)
	defer cancel()
	require.NoError(t, b.Close(ctx))
}

// A hook that ends its goroutine ends nothing of the bulkhead's.
func TestAHooksGoexitEndsNothingElse(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, s.Client(t), once(1), Options{Timeout: calm, OnOutage: leaf.FailClosed, OnStore: func(context.Context, leaf.StoreEvent) {
		runtime.Goexit()
	}})
	s.Kill(t)
	_, err := b.Acquire(bg)
	storeError(t, err)
	s.Restart(t)
	redistest.Eventually(t, "the store is asked again", func() bool {
		p, err := b.Acquire(bg)
		if err == nil {
			back(t, &p)
		}
		return err == nil
	})
}

// A hook may call the bulkhead that it hears of: its call does not wait for the goroutine that waits for the hook.
func TestAHookMayCallItsOwnBulkhead(t *testing.T) {
	s := redistest.Start(t)
	heard := make(chan time.Duration, 1)
	var b *Bulkhead
	b = open(t, s.Client(t), once(4), Options{Timeout: calm, OnStore: func(ctx context.Context, e leaf.StoreEvent) {
		if e.Kind == "failed" {
			began := time.Now()
			p, err := b.Acquire(ctx)
			if err == nil {
				err = p.Settle(ctx, leaf.Outcome{})
			}
			if err != nil {
				t.Error("inside the hook:", err)
			}
			heard <- time.Since(began)
		}
	}})
	s.Kill(t)
	back(t, take(t, b))
	require.Less(t, <-heard, calm, "a call without an answer would wait for twice the timeout")
}

// A store that is slow, but answers within its budget, is no outage: nobody is admitted beside it.
func TestASlowStoreIsNoOutage(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr)
	o := s.Options()
	o.Addr = proxy.Addr
	b := open(t, clientOf(t, o), once(2), Options{Timeout: time.Second})
	take(t, b)
	take(t, b)
	proxy.OnReply(func([]string) redistest.Action { return redistest.Action{Delay: 600 * time.Millisecond} })
	defer proxy.OnReply(nil)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			_, err := b.Acquire(bg)
			assert.ErrorIs(t, err, bulkhead.ErrFull)
		})
		<-time.After(40 * time.Millisecond)
	}
	callers.Wait()
	down := b.store.Down()
	require.False(t, down)
}

// A call that lasts longer than the lease keeps its slot: it is renewed while it runs.
func TestACallThatOutlastsTheLeaseKeepsItsSlot(t *testing.T) {
	const lease = 1200 * time.Millisecond
	heard := &events{}
	two := fleet(t, 2, once(1), Options{Timeout: lease / 2, LeaseTTL: lease, OnStore: heard.hear, OnOutage: leaf.FailClosed})
	p := take(t, two[0])
	for began := time.Now(); time.Since(began) < 2*lease; {
		isFull(t, two[1])
		<-time.After(5 * time.Millisecond)
	}
	back(t, p)
	back(t, take(t, two[1]))
	require.Zero(t, heard.of("overage"))
}

// A server that is busy for a second (DEBUG SLEEP) executes afterwards what nobody waits for any more: no call lasts longer than
// its budget, and nothing of that is kept.
func TestABusyServerHoldsNoCallUpAndKeepsNothing(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Config: []string{"enable-debug-command yes"}})
	b := open(t, s.Client(t), once(4), Options{OnOutage: leaf.FailClosed})
	held := take(t, b)
	asleep := make(chan struct{})
	go func() {
		defer close(asleep)
		s.Do(t, "debug", "sleep", "1")
	}()
	late := lateness()
	var longest time.Duration
	refused := 0
	for awake := false; !awake; {
		select {
		case <-asleep:
			awake = true
		case <-time.After(time.Millisecond):
		}
		began := time.Now()
		p, err := b.Acquire(bg)
		longest = max(longest, time.Since(began))
		if err == nil {
			_ = p.Settle(bg, leaf.Outcome{})
		} else {
			storeError(t, err)
			refused++
		}
	}
	require.Positive(t, refused)
	require.Less(t, longest, redisTimeout+margin+late())
	redistest.Eventually(t, "nothing is kept", func() bool { n, err := b.InUse(bg); return err == nil && n == 1 })
	back(t, held)
}

// A Sentinel's failover: who is inside counts on the new primary, too, whether its permit was replicated or has to be reported.
func TestAFailoverBySentinelAdmitsNobodyTooMany(t *testing.T) {
	g := redistest.StartSentinel(t)
	a := open(t, g.Client(t), once(2), Options{OnOutage: leaf.FailClosed})
	b := open(t, g.Client(t), once(2), Options{OnOutage: leaf.FailClosed})
	p, q := take(t, a), take(t, b)
	isFull(t, a)
	g.Primary.Kill(t)
	g.AwaitPromotion(t)
	redistest.Eventually(t, "the new primary answers", func() bool {
		for _, guard := range []*Bulkhead{a, b} {
			_, err := guard.TryAcquire(bg)
			require.Error(t, err)
			if guard.store.Down() {
				return false
			}
		}
		return true
	})
	isFull(t, a)
	back(t, p)
	back(t, q)
}
