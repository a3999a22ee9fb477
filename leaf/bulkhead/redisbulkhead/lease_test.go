package redisbulkhead

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/stretchr/testify/require"
)

// virtual is the scripts' clock, in hands of the test.
type virtual struct{ at atomic.Int64 }

func newVirtual() *virtual {
	v := &virtual{}
	v.at.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	return v
}

func (v *virtual) Now() time.Time          { return time.UnixMicro(v.at.Load()) }
func (v *virtual) advance(d time.Duration) { v.at.Add(d.Microseconds()) }

// events collects what OnStore hears.
type events struct {
	mu  sync.Mutex
	all []leaf.StoreEvent
}

func (e *events) hear(_ context.Context, ev leaf.StoreEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func (e *events) of(kind string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		if ev.Kind == kind {
			n++
		}
	}
	return n
}

func gauge(b *Bulkhead, name string) float64 {
	for _, g := range b.Inspect().Gauges {
		if g.Name == name {
			return g.Value
		}
	}
	return -1
}

// once is a bulkhead whose calls do not wait.
func once(n int) bulkhead.Config { return bulkhead.Config{Name: "db", MaxConcurrent: n} }

// Section 13's test 9.
func TestASlotIsFreeAtTheEndOfItsLeaseAndNotBefore(t *testing.T) {
	v := newVirtual()
	two := fleet(t, 2, once(1), Options{Now: v.Now, LeaseTTL: time.Hour})
	p := take(t, two[0])
	v.advance(time.Hour - time.Microsecond)
	isFull(t, two[1])
	require.Equal(t, 1, inUse(t, two[1]))
	v.advance(time.Microsecond)
	require.Equal(t, 0, inUse(t, two[1]))
	back(t, take(t, two[1]))
	back(t, p)
}

// Section 13's test 9.
func TestAReleaseAfterExpiryChangesNothingAndCountsAsOverage(t *testing.T) {
	v, heard := newVirtual(), &events{}
	two := fleet(t, 2, once(1), Options{Now: v.Now, LeaseTTL: time.Hour, OnStore: heard.hear})
	p := take(t, two[0])
	v.advance(time.Hour)
	q := take(t, two[1])
	back(t, p)
	redistest.Eventually(t, "the overage is told", func() bool { return heard.of("overage") == 1 })
	require.Equal(t, 1.0, gauge(two[0], "overages"))
	require.Equal(t, 1, inUse(t, two[0]), "the other one's slot is still taken")
	isFull(t, two[0])
	back(t, q)
	require.Equal(t, 1, heard.of("overage"))
	require.Equal(t, 0.0, gauge(two[1], "overages"))
}

// Whether anybody came meanwhile, who would have swept the lease away, makes no difference.
func TestAReleaseAfterExpiryCountsThoughNobodyCame(t *testing.T) {
	v, heard := newVirtual(), &events{}
	b := fleet(t, 1, once(1), Options{Now: v.Now, LeaseTTL: time.Hour, OnStore: heard.hear})[0]
	p := take(t, b)
	v.advance(time.Hour - time.Microsecond)
	back(t, p)
	require.Zero(t, gauge(b, "overages"))
	p = take(t, b)
	v.advance(time.Hour)
	back(t, p)
	redistest.Eventually(t, "the overage is told", func() bool { return heard.of("overage") == 1 })
	require.Equal(t, 1.0, gauge(b, "overages"))
}

// Section 13's test 9.
func TestAPermitIsGivenBackOnce(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, s.Client(t), once(2), Options{Timeout: calm})
	for range 2 {
		take(t, b)
	}
	token, _ := latest(b)
	require.NoError(t, b.Settle(bg, token, leaf.Outcome{}))
	before := s.Calls(t, "evalsha", "eval")
	require.NoError(t, b.Settle(bg, token, leaf.Outcome{}))
	require.NoError(t, b.Settle(bg, 4711, leaf.Outcome{}))
	require.Equal(t, before, s.Calls(t, "evalsha", "eval"))
	take(t, b)
	isFull(t, b)
	require.Zero(t, gauge(b, "overages"))
}

// Section 13's test 10, the order in which it matters: a renewal that was under way longer than its process waited for it
// arrives after the release.
func TestALateRenewalResurrectsNothing(t *testing.T) {
	b := fleet(t, 1, once(2), Options{})[0]
	p := take(t, b)
	_, s := latest(b)
	b.mu.Lock()
	b.renewals = append(b.renewals, s)
	renewal := b.compose(time.Now())
	renewal.tokens = []string{random()} // and it wanted one, too
	b.mu.Unlock()
	require.Len(t, renewal.renewals, 1)
	require.NotZero(t, renewal.bound)
	back(t, p)
	require.Equal(t, 0, inUse(t, b))

	renewal.bound -= b.opts.Timeout.Microseconds() // as it is once the process has left it
	a := run(t, b, renewal)
	require.EqualValues(t, flagStale, a.flags)
	require.Equal(t, 0, inUse(t, b))

	renewal.bound += b.opts.Timeout.Microseconds()
	a = run(t, b, renewal) // in time it would have counted: the test can see the difference
	require.EqualValues(t, 1, a.granted)
	require.Equal(t, 2, inUse(t, b))
}

// run sends a turn as it is.
func run(t *testing.T, b *Bulkhead, turnCall *turnCall) answer {
	t.Helper()
	reply, err := b.store.Do(bg, redisscript.Call{Op: leaf.OpRecord, Script: turn, Args: turnCall.args(b)})
	require.NoError(t, err)
	a, err := turnCall.read(reply)
	require.NoError(t, err)
	return a
}

// Section 13's test 10, under way for real: renewals every few milliseconds beside calls that come and go.
func TestRenewalsRacingReleasesLeaveNothingBehind(t *testing.T) {
	b := fleet(t, 1, waiting(4), Options{LeaseTTL: time.Hour})[0]
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				b.mu.Lock()
				b.renewAll(time.Now())
				b.run()
				b.mu.Unlock()
			}
		}
	})
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 100 {
				p, err := b.Acquire(bg)
				if err == nil {
					err = p.Settle(bg, leaf.Outcome{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	running.Wait()
	require.Equal(t, 0, inUse(t, b))
}

func TestASendingTwiceTakesOnce(t *testing.T) {
	b := fleet(t, 1, once(3), Options{})[0]
	c := &turnCall{tokens: []string{random(), random()}, limit: 3, queued: 2}
	require.EqualValues(t, 2, run(t, b, c).granted)
	require.EqualValues(t, 2, run(t, b, c).granted)
	require.Equal(t, 2, inUse(t, b))
}

func TestTheServersClockStepsBackAnHourAndLeasesStepWithIt(t *testing.T) {
	v := newVirtual()
	two := fleet(t, 2, once(1), Options{Now: v.Now, LeaseTTL: time.Minute})
	take(t, two[0]) // its holder is not heard of again
	v.advance(-time.Hour)
	isFull(t, two[1])
	v.advance(time.Minute - time.Microsecond)
	isFull(t, two[1])
	v.advance(2 * time.Microsecond)
	back(t, take(t, two[1]))
}

func TestAnOldHolderThatReportsAgainLetsNobodyNewIn(t *testing.T) {
	v, heard := newVirtual(), &events{}
	two := fleet(t, 2, once(2), Options{Now: v.Now, LeaseTTL: time.Hour, OnStore: heard.hear})
	zombie := take(t, two[0])
	v.advance(time.Hour)
	p, q := take(t, two[1]), take(t, two[1])
	two[0].mu.Lock()
	two[0].renewAll(time.Now())
	two[0].run()
	two[0].mu.Unlock()
	redistest.Eventually(t, "the renewal shows one more than there may be", func() bool { return inUse(t, two[1]) == 3 })
	redistest.Eventually(t, "the overage is told", func() bool { return heard.of("overage") == 1 })
	back(t, p)
	isFull(t, two[1])
	back(t, zombie)
	require.Equal(t, 1, heard.of("overage"), "told once")
	p = take(t, two[0])
	isFull(t, two[1])
	back(t, p)
	back(t, q)
}

func TestTheKeyOutlivesItsLastPermitByOneLease(t *testing.T) {
	s := redistest.Shared(t)
	b := fleet(t, 1, once(1), Options{LeaseTTL: time.Hour})[0]
	ttl := func() time.Duration {
		ms := s.Do(t, "pttl", b.store.Key()).(int64)
		return time.Duration(ms) * time.Millisecond
	}
	p := take(t, b)
	require.InDelta(t, 2*time.Hour, ttl(), float64(time.Minute))
	back(t, p)
	require.InDelta(t, time.Hour, ttl(), float64(time.Minute))
	isNew, err := New(s.Client(t), once(1), Options{Prefix: s.Prefix(t)})
	require.NoError(t, err)
	require.EqualValues(t, 0, s.Do(t, "exists", isNew.store.Key()), "making one writes nothing")
	require.Equal(t, 0, inUse(t, isNew))
	require.EqualValues(t, 0, s.Do(t, "exists", isNew.store.Key()), "counting writes nothing")
	closed(t, isNew)
}
