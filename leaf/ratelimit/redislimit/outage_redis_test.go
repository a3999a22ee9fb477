package redislimit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/stretchr/testify/require"
)

// lag measures how late timers are on this machine while f runs.
func lag(f func()) (most time.Duration) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			began := time.Now()
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				most = max(most, time.Since(began)-time.Millisecond)
			}
		}
	}()
	f()
	close(stop)
	<-done
	return most
}

// Test 5: SIGSTOP for 2 s: no call above its budget + 20 ms, no over-admission, microseconds once it is known, recovery < 1 s.
func TestStoppedServer(t *testing.T) {
	for _, policy := range []leaf.Outage{leaf.FailClosed, leaf.FailLocal} {
		t.Run(policy.String(), func(t *testing.T) {
			const budget = 50 * time.Millisecond
			p := of(t, redistest.Start(t))
			p.opts.Timeout, p.opts.OnOutage, p.opts.Instances = budget, policy, 4
			l := p.limiter(ratelimit.Config{Rate: 200, Burst: 40})
			var (
				mu       sync.Mutex
				took     []time.Duration // of calls in the last second of the outage
				longest  time.Duration
				admitted int
				all      sync.WaitGroup
			)
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			var known time.Time // when the outage has surely been noticed
			began := time.Now()
			late := lag(func() {
				for range 8 {
					all.Go(func() {
						for ctx.Err() == nil {
							at := time.Now()
							err := l.AllowN(bg, 1)
							d := time.Since(at)
							mu.Lock()
							longest = max(longest, d)
							if err == nil {
								admitted++
							}
							if !known.IsZero() && at.After(known) {
								took = append(took, d)
							}
							mu.Unlock()
							<-time.After(time.Millisecond)
						}
					})
				}
				redistest.Eventually(t, "it works", func() bool { mu.Lock(); defer mu.Unlock(); return admitted > 40 })
				p.server.Pause(t)
				<-time.After(time.Second)
				mu.Lock()
				known = time.Now()
				mu.Unlock()
				<-time.After(time.Second)
				mu.Lock()
				during := slices.Clone(took)
				known = time.Time{}
				mu.Unlock()
				p.server.Resume(t)
				redistest.Within(t, time.Second, "recovered", func() bool { return !l.store.Down() })
				slices.Sort(during)
				require.NotEmpty(t, during)
				require.Less(t, during[len(during)/2], 5*time.Millisecond, "the median call of an outage")
			})
			cancel()
			all.Wait()
			allowed := 40 + 200*time.Since(began).Seconds()
			if policy == leaf.FailLocal { // a quarter of everything, for a full bucket at each outage (one or two are noticed)
				allowed += 3*10 + 50*3
			}
			require.LessOrEqual(t, float64(admitted), allowed)
			require.LessOrEqual(t, longest, budget+20*time.Millisecond+late, "timers were up to %v late", late)
		})
	}
}

// While the store is away the policy decides, at once; each switch is one event.
func TestOutagePolicies(t *testing.T) {
	server := redistest.Start(t)
	p := of(t, server)
	p.opts.Timeout = time.Second
	cfg := ratelimit.Config{Name: "api", Rate: 8, Per: time.Hour, Burst: 10}
	var mu sync.Mutex
	var events []leaf.StoreEvent
	shared := func(policy leaf.Outage) *Limiter {
		return p.limiter(cfg, func(o *Options) {
			o.OnOutage, o.Instances, o.Prefix = policy, 3, policy.String()
			o.OnStore = func(_ context.Context, e leaf.StoreEvent) {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, e)
			}
		})
	}
	local, open, closed := shared(leaf.FailLocal), shared(leaf.FailOpen), shared(leaf.FailClosed)
	limiters := []*Limiter{local, open, closed}
	for _, l := range limiters {
		require.NoError(t, l.AllowN(bg, 10))
		require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited)
	}
	for outage := range 2 {
		server.Kill(t)
		for i := range 12 {
			err := local.AllowN(bg, 1)
			require.Equal(t, i < 3, err == nil, "FailLocal: floor(10/3), full at each outage; call %d of outage %d: %v", i, outage, err)
			if err != nil {
				require.InDelta(t, time.Hour/2, waitOf(t, err), float64(10*time.Second), "floor(8/3) per hour")
			}
			require.NoError(t, open.AllowN(bg, 1))
			failed, ok := errors.AsType[*leaf.StoreError](closed.AllowN(bg, 1))
			require.True(t, ok && failed.Rejected() && failed.NotExecuted && failed.Op == leaf.OpAdmit, "%v", failed)
			require.Equal(t, "api", failed.Name)
		}
		failed, ok := errors.AsType[*leaf.StoreError](local.AllowN(bg, 4))
		require.True(t, ok && failed.Rejected(), "more than the share ever holds, but no usage error: %v", failed)
		require.ErrorContains(t, local.AllowN(bg, 11), "11", "more than Burst still is one")
		mu.Lock()
		require.Len(t, events, 3)
		for _, e := range events {
			require.Equal(t, "failed", e.Kind)
			require.Equal(t, "api", e.Name)
			require.Error(t, e.Err)
		}
		events = nil
		mu.Unlock()
		server.Restart(t)
		for _, l := range limiters { // a server without persistence has forgotten them: full again
			redistest.Eventually(t, "recovered", func() bool {
				return !l.store.Down() && l.AllowN(bg, 10) == nil
			})
			require.ErrorIs(t, l.AllowN(bg, 1), ratelimit.ErrLimited)
		}
		mu.Lock()
		require.Len(t, events, 3)
		require.Equal(t, "recovered", events[0].Kind)
		events = nil
		mu.Unlock()
	}
}

// Test 18: admit failure: fn is not called; record failure: the result is unchanged.
func TestAStoreFailureNeverReplacesTheResult(t *testing.T) {
	server := redistest.Start(t)
	p := of(t, server)
	p.opts.OnOutage = leaf.FailClosed
	l := p.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 10})
	result, err := leaf.Do(bg, l, func(context.Context) (string, error) { server.Kill(t); return "done", nil })
	require.NoError(t, err)
	require.Equal(t, "done", result)
	_, err = leaf.Do(bg, l, func(context.Context) (string, error) { t.Error("called"); return "", nil })
	_, ok := errors.AsType[*leaf.StoreError](err)
	require.True(t, ok, "%v", err)

	server.Restart(t)
	redistest.Eventually(t, "recovered", func() bool { return l.AllowN(bg, 1) == nil })
	permit, err := l.Acquire(bg)
	require.NoError(t, err)
	server.Kill(t)
	err = permit.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun})
	failed, ok := errors.AsType[*leaf.StoreError](err)
	require.True(t, ok && failed.Op == leaf.OpRecord && !failed.Rejected(), "%v", err)
	require.NoError(t, (&leaf.Permit{}).Settle(bg, leaf.Outcome{}))
}

// A refund that certainly was not heard of goes with a later call; one of a fallback goes to the fallback.
func TestRefundsAndOutages(t *testing.T) {
	server := redistest.Start(t, redistest.Options{Persist: true})
	p := of(t, server)
	l := p.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 10}, func(o *Options) { o.Instances = 5 })
	permit, err := l.Acquire(bg)
	require.NoError(t, err)
	server.Kill(t)
	require.Error(t, permit.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	for range 3 { // the share is 2: what is given back is there again
		one, err := l.Acquire(bg)
		require.NoError(t, err)
		two, err := l.Acquire(bg)
		require.NoError(t, err)
		_, err = l.Acquire(bg)
		require.ErrorIs(t, err, ratelimit.ErrLimited)
		require.NoError(t, one.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
		require.NoError(t, two.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}))
	}
	left, err := l.Acquire(bg)
	require.NoError(t, err)
	server.Restart(t)
	redistest.Eventually(t, "recovered", func() bool { return !l.store.Down() })
	redistest.Eventually(t, "a call carries the refund", func() bool { return l.AllowN(bg, 9) == nil })
	require.NoError(t, left.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun}), "not the store's")
	require.InDelta(t, 1, tokens(t, l), 0.1)
}

// Who waits when the store fails goes on waiting for the local limiter, with the patience that is left.
func TestWaitersAndOutages(t *testing.T) {
	for _, policy := range []leaf.Outage{leaf.FailClosed, leaf.FailOpen, leaf.FailLocal} {
		t.Run(policy.String(), func(t *testing.T) {
			server := redistest.Start(t)
			p := of(t, server)
			p.opts.OnOutage = policy
			l := p.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 1, MaxWait: 100 * time.Hour})
			require.NoError(t, l.AllowN(bg, 1))
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			answers := make(chan error, 2)
			for range 2 {
				go func() { answers <- l.Wait(ctx, 1) }()
			}
			redistest.Eventually(t, "both wait", func() bool { return queued(l) == 2 })
			server.Kill(t) // the line asks once a second
			first := <-answers
			if policy == leaf.FailClosed {
				_, ok := errors.AsType[*leaf.StoreError](first)
				require.True(t, ok, "%v", first)
				require.Error(t, <-answers)
				return
			}
			require.NoError(t, first)
			if policy == leaf.FailOpen {
				require.NoError(t, <-answers)
				return
			}
			cancel()
			require.ErrorIs(t, <-answers, context.Canceled, "the share of one token was given to the first")
		})
	}
}
