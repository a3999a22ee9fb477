package redisbulkhead

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/stretchr/testify/require"
)

// margin is what a call may last beyond its budget.
const margin = 20 * time.Millisecond

// lateness measures how late this machine's own timers are while others want its processors, too.
func lateness() (stop func() time.Duration) {
	const tick = 5 * time.Millisecond
	end, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for {
			began := time.Now()
			select {
			case <-end:
				worst <- most
				return
			case <-time.After(tick):
				most = max(most, time.Since(began)-tick)
			}
		}
	}()
	return func() time.Duration { close(end); return <-worst }
}

func storeError(t testing.TB, err error) *leaf.StoreError {
	t.Helper()
	e, ok := errors.AsType[*leaf.StoreError](err)
	require.True(t, ok, "%v (%T)", err, err)
	return e
}

func attempt(b *Bulkhead) (took time.Duration, err error) {
	began := time.Now()
	_, err = b.Acquire(bg)
	return time.Since(began), err
}

// Section 13's test 5.
func TestAStoppedServerHoldsNoCallLongerThanItsBudgetAndAdmitsNobodyTooMany(t *testing.T) {
	s := redistest.Start(t)
	heard := &events{}
	cfg := bulkhead.Config{Name: "db", MaxConcurrent: 4, MaxWait: 100 * time.Millisecond}
	b := open(t, s.Client(t), cfg, Options{OnOutage: leaf.FailClosed, OnStore: heard.hear})
	held := take(t, b)
	s.Pause(t)
	stopped, late := time.Now(), lateness()
	var mu sync.Mutex
	var took []time.Duration
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for time.Since(stopped) < 2*time.Second {
				d, err := attempt(b)
				if _, ok := errors.AsType[*leaf.StoreError](err); !ok {
					t.Errorf("FailClosed while the store is stopped: %v", err)
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
				<-time.After(time.Millisecond)
			}
		})
	}
	callers.Wait()
	slices.Sort(took)
	t.Logf("%d calls: median %v, most %v", len(took), took[len(took)/2], took[len(took)-1])
	require.Less(t, took[len(took)-1], redisTimeout+margin+late())
	require.Less(t, took[len(took)/2], 5*time.Millisecond, "with the store's breaker open a call costs next to nothing")

	s.Resume(t)
	resumed := time.Now()
	all := []*leaf.Permit{held}
	redistest.Within(t, time.Second, "admitted again", func() bool {
		p, err := b.Acquire(bg)
		if err == nil {
			all = append(all, &p)
		}
		return len(all) == 4
	})
	t.Logf("all slots back %v after the server", time.Since(resumed))
	isFull(t, b)
	redistest.Eventually(t, "the fleet's count is exact", func() bool { return inUse(t, b) == 4 })
	for _, p := range all {
		back(t, p)
	}
	redistest.Eventually(t, "it is told", func() bool { return heard.of("recovered") == 1 })
	require.Equal(t, 1, heard.of("failed"))
	require.Zero(t, heard.of("overage"))
}

const redisTimeout = 50 * time.Millisecond

// cut is a bulkhead whose server can be stopped and started, with the store's breaker open.
func cut(t *testing.T, cfg bulkhead.Config, opts Options) (*Bulkhead, *redistest.Server) {
	t.Helper()
	s := redistest.Start(t)
	opts.Timeout = calm
	b := open(t, s.Client(t), cfg, opts)
	back(t, take(t, b))
	return b, s
}

func TestFailLocalAdmitsItsShareAndTellsTheStoreAfterwards(t *testing.T) {
	b, s := cut(t, once(5), Options{Instances: 2})
	fromThere := take(t, b)
	s.Kill(t)
	p, q := take(t, b), take(t, b) // floor(5/2)
	_, err := b.Acquire(bg)
	require.Equal(t, &bulkhead.FullError{Name: "db", Max: 2}, err)
	require.Equal(t, "fail_local", b.Inspect().State)
	back(t, p)
	isNotFull := take(t, b)
	require.Equal(t, 3.0, gauge(b, "in_use"))

	// Both kinds settle where they came from: the one from here is back, the one from there cannot be told.
	back(t, isNotFull)
	e := storeError(t, fromThere.Settle(bg, leaf.Outcome{}))
	require.Equal(t, leaf.OpRecord, e.Op)
	require.False(t, e.Rejected())
	isNotFull = take(t, b)

	s.Restart(t)
	redistest.Eventually(t, "the store hears who was admitted meanwhile, and of nobody else", func() bool {
		n, err := b.InUse(bg)
		return err == nil && n == 2
	})
	redistest.Eventually(t, "recovered", func() bool { return b.Inspect().State == "" })
	back(t, q)
	back(t, isNotFull)
	require.Equal(t, 0, inUse(t, b))
}

// At most MaxConcurrent and all the shares together, however often the store comes and goes while the calls last.
func TestTheShareCountsWhoIsInsideFromAnEarlierOutage(t *testing.T) {
	b, s := cut(t, once(1), Options{})
	s.Kill(t)
	p := take(t, b)
	for range 2 {
		_, err := b.Acquire(bg)
		require.ErrorIs(t, err, bulkhead.ErrFull)
		s.Restart(t)
		redistest.Eventually(t, "recovered", func() bool {
			_, err := b.TryAcquire(bg)
			return errors.Is(err, bulkhead.ErrFull) && b.Inspect().State == ""
		})
		s.Kill(t)
	}
	_ = p.Settle(bg, leaf.Outcome{}) // it frees the share, whatever the store has heard
	q := take(t, b)
	isFull(t, b)
	back(t, q)
	back(t, take(t, b))
}

func TestWhoWaitsWhenTheStoreFailsIsServedFromTheShareInOrder(t *testing.T) {
	b, s := cut(t, waiting(1), Options{})
	held := take(t, b)
	order := make(chan int, 3)
	permits := make(chan *leaf.Permit, 3)
	var callers sync.WaitGroup
	for i := range 3 {
		callers.Go(func() {
			p, err := b.Acquire(bg)
			if err != nil {
				t.Error(err)
			}
			order <- i
			permits <- &p
		})
		redistest.Eventually(t, "it waits", func() bool { return b.Queued() == i+1 })
	}
	s.Kill(t)
	for i := range 3 {
		require.Equal(t, i, <-order)
		p := <-permits
		require.Empty(t, order, "one at a time")
		back(t, p)
	}
	callers.Wait()
	require.Error(t, held.Settle(bg, leaf.Outcome{}))
}

func TestFailOpenAdmitsAll(t *testing.T) {
	b, s := cut(t, once(1), Options{OnOutage: leaf.FailOpen})
	s.Kill(t)
	for range 20 {
		defer back(t, take(t, b))
	}
	require.Equal(t, "fail_open", b.Inspect().State)
	s.Restart(t)
	redistest.Eventually(t, "the store hears of all", func() bool { n, err := b.InUse(bg); return err == nil && n == 20 })
	isFull(t, b)
}

// Section 13's test 18.
func TestAdmitFailureDoesNotCallAndRecordFailureChangesNoResult(t *testing.T) {
	b, s := cut(t, once(1), Options{OnOutage: leaf.FailClosed})
	v, err := leaf.Do(bg, b, func(context.Context) (int, error) {
		s.Kill(t)
		return 42, nil
	})
	require.NoError(t, err)
	require.Equal(t, 42, v)
	called := false
	_, err = leaf.Do(bg, b, func(context.Context) (int, error) { called = true; return 0, nil })
	require.False(t, called)
	e := storeError(t, err)
	require.Equal(t, leaf.OpAdmit, e.Op)
	require.True(t, e.Rejected())
	require.True(t, e.NotExecuted, "%v", err)
}

// Section 13's test 13.
func TestACallThatLeavesWhileItAsksGivesThePermitBack(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr)
	o := s.Options()
	o.Addr = proxy.Addr
	b := open(t, clientOf(t, o), once(1), Options{Timeout: calm})
	back(t, take(t, b))
	arrived := make(chan struct{}, 16)
	proxy.OnReply(func([]string) redistest.Action {
		arrived <- struct{}{}
		return redistest.Action{Delay: 100 * time.Millisecond}
	})
	ctx, cancel := context.WithCancelCause(bg)
	why := errors.New("enough")
	go func() {
		<-arrived // the server has executed it
		cancel(why)
	}()
	_, err := b.Acquire(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
	proxy.OnReply(nil)
	redistest.Eventually(t, "the permit is back", func() bool { return inUse(t, b) == 0 })
	back(t, take(t, b))
}

// Section 13's test 13, where nobody waits for the answer any more.
func TestAnAnswerThatComesAfterTheTimeoutIsTakenBack(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr)
	o := s.Options()
	o.Addr = proxy.Addr
	b := open(t, clientOf(t, o), once(1), Options{Timeout: time.Second, OnOutage: leaf.FailClosed})
	back(t, take(t, b))
	proxy.OnReply(func(command []string) redistest.Action {
		proxy.OnReply(nil)
		return redistest.Action{Delay: 1500 * time.Millisecond}
	})
	_, err := b.Acquire(bg)
	require.False(t, storeError(t, err).NotExecuted)
	redistest.Eventually(t, "the permit is back", func() bool {
		n, err := b.InUse(bg)
		return err == nil && n == 0
	})
	require.Zero(t, gauge(b, "overages"))
}

func TestLostRepliesLoseNoSlot(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr)
	o := s.Options()
	o.Addr = proxy.Addr
	b := open(t, clientOf(t, o), waiting(4), Options{Timeout: calm, OnOutage: leaf.FailClosed})
	proxy.DropShare(0.05, 7, "evalsha", "eval")
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 100 {
				if p, err := b.Acquire(bg); err == nil {
					_ = p.Settle(bg, leaf.Outcome{})
				}
			}
		})
	}
	callers.Wait()
	require.NotZero(t, proxy.Dropped())
	proxy.OnReply(nil)
	redistest.Eventually(t, "every slot is back", func() bool { n, err := b.InUse(bg); return err == nil && n == 0 })
	require.Zero(t, gauge(b, "overages"))
}
