package redisbulkhead

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// result is how a call in a goroutine of its own ended.
type result struct {
	permit *leaf.Permit
	err    error
}

// goAcquire waits until the call waits, in its place.
func goAcquire(t *testing.T, ctx context.Context, b *Bulkhead) <-chan result {
	t.Helper()
	before := b.Queued()
	out := make(chan result, 1)
	go func() {
		p, err := b.Acquire(ctx)
		out <- result{&p, err}
	}()
	redistest.Eventually(t, "it waits", func() bool { return b.Queued() == before+1 })
	return out
}

func TestAFullBulkheadRefusesWithTheLeaseAsAnUpperBound(t *testing.T) {
	b := fleet(t, 1, once(1), Options{LeaseTTL: 90 * time.Second})[0]
	defer back(t, take(t, b))
	_, err := b.Acquire(bg)
	require.Equal(t, &bulkhead.FullError{Name: "db", Max: 1, Wait: 90 * time.Second}, err)
	require.Equal(t, 90*time.Second, b.Lease())
	require.True(t, b.Occupies())
}

func TestAWaitEndsAtMaxWaitOfTheConfiguredClock(t *testing.T) {
	clock := clockwork.NewFakeClock()
	b := fleet(t, 1, bulkhead.Config{Name: "db", MaxConcurrent: 1, MaxWait: time.Minute, Clock: clock}, Options{})[0]
	held := take(t, b)
	out := goAcquire(t, bg, b)
	require.NoError(t, clock.BlockUntilContext(bg, 1))
	clock.Advance(time.Minute - 1)
	require.Equal(t, 1, b.Queued())
	clock.Advance(1)
	r := <-out
	require.Equal(t, &bulkhead.FullError{Name: "db", Max: 1, Waited: time.Minute, Wait: time.Minute}, r.err)
	require.Zero(t, b.Queued())
	back(t, held)
}

func TestTheQueueIsFirstInFirstOutAndBounded(t *testing.T) {
	cfg := waiting(1)
	cfg.MaxQueue = 2
	b := fleet(t, 1, cfg, Options{})[0]
	held := take(t, b)
	first, second := goAcquire(t, bg, b), goAcquire(t, bg, b)
	_, err := b.Acquire(bg)
	require.ErrorIs(t, err, bulkhead.ErrFull)
	isFull(t, b)
	back(t, held)
	r := <-first
	require.NoError(t, r.err)
	require.Empty(t, second)
	back(t, r.permit)
	r = <-second
	require.NoError(t, r.err)
	back(t, r.permit)
}

func TestManyThatAskTogetherAreNotTheQueue(t *testing.T) {
	cfg := waiting(64)
	cfg.MaxQueue = 1
	b := fleet(t, 1, cfg, Options{})[0]
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if _, err := b.Acquire(bg); err != nil {
				t.Errorf("a slot was free: %v", err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 64, inUse(t, b))
}

func TestMoreThanOneTurnHolds(t *testing.T) {
	const n = 3*mostInTurn + 1
	b := fleet(t, 1, once(n), Options{LeaseTTL: time.Hour})[0]
	permits := make(chan *leaf.Permit, 2*n)
	var all sync.WaitGroup
	for range 2 * n {
		all.Go(func() {
			if p, err := b.Acquire(bg); err == nil {
				permits <- &p
			} else if !errors.Is(err, bulkhead.ErrFull) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, permits, n)
	require.Equal(t, n, inUse(t, b))
	renew(t, b)
	require.Equal(t, n, inUse(t, b))
	close(permits)
	for p := range permits {
		all.Go(func() { _ = p.Settle(bg, leaf.Outcome{}) })
	}
	all.Wait()
	require.Zero(t, inUse(t, b))
}

// "at most 8 local hand-overs", and no store call for them.
func TestASlotIsHandedOverEightTimesThenTheOthersHaveTheirTurn(t *testing.T) {
	s := redistest.Start(t)
	opts := Options{Timeout: calm, LeaseTTL: time.Hour}
	a, b := open(t, s.Client(t), waiting(1), opts), open(t, s.Client(t), waiting(1), opts)
	held := take(t, a)
	other := goAcquire(t, bg, b)
	var mine []<-chan result
	for range 20 {
		mine = append(mine, goAcquire(t, bg, a))
	}
	for i := range handovers {
		back(t, held)
		r := <-mine[i]
		require.NoError(t, r.err)
		require.Empty(t, other, "after %d hand-overs", i+1)
		held = r.permit
	}
	back(t, held)
	r := <-other
	require.NoError(t, r.err)
	require.Equal(t, 20-handovers, a.Queued())
	back(t, r.permit) // b has nobody else: it is a's turn
	for i := handovers; i < 20; i++ {
		r := <-mine[i]
		require.NoError(t, r.err)
		back(t, r.permit)
	}
}

func TestAHintWakesWhoseTurnItIsAndNobodyElse(t *testing.T) {
	s := redistest.Shared(t)
	two := fleet(t, 2, waiting(1), Options{})
	held := take(t, two[0])
	hints := s.Client(t).Subscribe(bg, two[0].channel(), two[1].channel())
	defer hints.Close()
	for range 2 {
		_, err := hints.Receive(bg)
		require.NoError(t, err)
	}
	out := goAcquire(t, bg, two[1])
	redistest.Eventually(t, "it listens", func() bool {
		return slices.Equal(s.Do(t, "pubsub", "numsub", two[1].channel()).([]any), []any{two[1].channel(), int64(2)})
	})
	back(t, held)
	back(t, (<-out).permit)
	s.Do(t, "publish", two[0].channel(), "the end")
	m, err := hints.ReceiveMessage(bg)
	require.NoError(t, err)
	require.Equal(t, two[1].channel(), m.Channel)
	for m.Channel == two[1].channel() {
		m, err = hints.ReceiveMessage(bg)
		require.NoError(t, err)
	}
	require.Equal(t, "the end", m.Payload)
}

func TestWithoutHintsThePollServes(t *testing.T) {
	s := redistest.Start(t)
	s.Do(t, "acl", "setuser", "deaf", "on", ">x", "~*", "resetchannels", "+@all")
	o := s.Options()
	o.Username, o.Password = "deaf", "x"
	a, b := open(t, clientOf(t, o), waiting(1), Options{Timeout: calm}), open(t, clientOf(t, o), waiting(1), Options{Timeout: calm})
	held := take(t, a)
	out := goAcquire(t, bg, b)
	back(t, held)
	r := <-out
	require.NoError(t, r.err)
	back(t, r.permit)
}

func TestWhoWaitedLongerIsServedFirstAcrossProcesses(t *testing.T) {
	three := fleet(t, 3, waiting(1), Options{})
	held := take(t, three[0])
	first := goAcquire(t, bg, three[1])
	second := goAcquire(t, bg, three[2])
	back(t, held)
	r := <-first
	require.NoError(t, r.err)
	require.Empty(t, second)
	back(t, r.permit)
	r = <-second
	require.NoError(t, r.err)
	back(t, r.permit)
}

func TestWhoDoesNotWaitOvertakesNobody(t *testing.T) {
	v := newVirtual() // places in the line do not end
	two := fleet(t, 2, waiting(1), Options{Now: v.Now, LeaseTTL: time.Hour})
	held := take(t, two[0])
	out := goAcquire(t, bg, two[1])
	_, s := latest(two[0])
	two[1].mu.Lock() // nobody polls now
	require.NoError(t, two[0].store.Client().ZRem(bg, two[0].store.Key(), s.token).Err())
	_, err := two[0].TryAcquire(bg)
	two[1].mu.Unlock()
	require.ErrorIs(t, err, bulkhead.ErrFull, "the one free slot is the other's")
	r := <-out
	require.NoError(t, r.err)
	back(t, r.permit)
	back(t, held)
}

func TestTheLastToLeaveTheQueueLeavesTheLine(t *testing.T) {
	s := redistest.Shared(t)
	v := newVirtual() // it would stay for ever
	two := fleet(t, 2, waiting(1), Options{Now: v.Now, LeaseTTL: time.Hour})
	held := take(t, two[0])
	ctx, cancel := context.WithCancel(bg)
	out := goAcquire(t, ctx, two[1])
	line := func() int64 { return s.Do(t, "zcount", two[0].store.Key(), "-inf", "(0").(int64) }
	require.EqualValues(t, 1, line())
	cancel()
	require.ErrorIs(t, (<-out).err, context.Canceled)
	redistest.Eventually(t, "the line is empty", func() bool { return line() == 0 })
	back(t, held)
}

func TestADeadWaiterHoldsUpTheOthersNoLongerThanItsPlaceIsGood(t *testing.T) {
	v := newVirtual()
	two := fleet(t, 2, once(1), Options{Now: v.Now, LeaseTTL: time.Hour})
	dead := &turnCall{tokens: []string{random()}, limit: 1, queued: 1, wait: true}
	held := take(t, two[0])
	require.EqualValues(t, flagWaiting, run(t, two[1], dead).flags)
	back(t, held)
	v.advance(patience - time.Microsecond)
	isFull(t, two[0])
	v.advance(time.Microsecond)
	back(t, take(t, two[0]))
}

// brokenClock panics where a wait begins.
type brokenClock struct{ clockwork.Clock }

func (brokenClock) NewTimer(time.Duration) clockwork.Timer { panic("broken clock") }

// gone is a context that ends the goroutine that waits for it.
type gone struct{ context.Context }

func (gone) Done() <-chan struct{} { runtime.Goexit(); return nil }

func TestPanicAndGoexitInAWaitLoseNoSlotAndNoPlace(t *testing.T) {
	broken := fleet(t, 1, bulkhead.Config{Name: "db", MaxConcurrent: 1, MaxWait: time.Hour, Clock: brokenClock{clockwork.NewRealClock()}}, Options{})[0]
	require.PanicsWithValue(t, "broken clock", func() { _, _ = broken.Acquire(bg) })
	b := fleet(t, 1, waiting(1), Options{})[0]
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.Acquire(gone{bg})
		t.Error("it came back")
	}()
	<-done
	for _, b := range []*Bulkhead{broken, b} {
		require.Zero(t, b.Queued())
		redistest.Eventually(t, "nothing is taken", func() bool { return inUse(t, b) == 0 && gauge(b, "in_use") == 0 })
	}
	back(t, take(t, b))
}
