package redisbulkhead

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestBadInputIsAnErrorThatNamesFieldAndValue(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	for want, opts := range map[string]Options{
		"Timeout is -1s":      {Timeout: -time.Second},
		"LeaseTTL is -1s":     {LeaseTTL: -time.Second},
		"LeaseTTL is 50ms":    {LeaseTTL: 50 * time.Millisecond},
		"LeaseTTL is 2562047": {LeaseTTL: math.MaxInt64},
		"Instances is -2":     {Instances: -2},
		"OnOutage is":         {OnOutage: 7},
	} {
		_, err := New(client, once(1), opts)
		require.ErrorContains(t, err, want)
	}
	_, err := New((*redis.Client)(nil), bulkhead.Config{MaxWait: -1}, Options{Instances: -1, Prefix: string(make([]byte, 300))})
	for _, want := range []string{"client is nil", "MaxConcurrent is 0", "MaxWait is -1ns", "Instances is -1", "Prefix is 300"} {
		require.ErrorContains(t, err, want)
	}
}

func TestZeroOptionsAreTheDefaults(t *testing.T) {
	b := open(t, redistest.Shared(t).Client(t), once(1), Options{})
	require.Equal(t, "fairlead:bulkhead:{db}", b.store.Key())
	require.Equal(t, time.Minute, b.Lease())
	require.Equal(t, 50*time.Millisecond, b.opts.Timeout)
	require.Equal(t, 1, b.opts.Instances)
}

func TestUpdateServesTheQueueAndKeepsWhoIsInside(t *testing.T) {
	b := fleet(t, 1, waiting(1), Options{})[0]
	p := take(t, b)
	out := goAcquire(t, bg, b)
	require.NoError(t, b.Update(waiting(2)))
	r := <-out
	require.NoError(t, r.err)
	require.NoError(t, b.Update(once(1)))
	require.Equal(t, 2, inUse(t, b))
	back(t, p)
	isFull(t, b)
	back(t, r.permit)
	back(t, take(t, b))

	for want, cfg := range map[string]bulkhead.Config{
		"MaxConcurrent is 0":   {Name: "db"},
		"Name may not change":  {Name: "other", MaxConcurrent: 1},
		"Clock may not change": {Name: "db", MaxConcurrent: 1, Clock: clockwork.NewFakeClock()},
	} {
		require.ErrorContains(t, b.Update(cfg), want)
		require.Equal(t, once(1), b.Config())
	}
}

func TestCloseEndsWaitsAndMayBeCalledAgainAndLeavesTheClientOpen(t *testing.T) {
	s := redistest.Shared(t)
	for policy, check := range map[leaf.Outage]func(r result){
		leaf.FailClosed: func(r result) { require.True(t, storeError(t, r.err).Rejected()) },
		leaf.FailLocal:  func(r result) { require.NoError(t, r.err); back(t, r.permit) },
		leaf.FailOpen:   func(r result) { require.NoError(t, r.err); back(t, r.permit) },
	} {
		client := s.Client(t)
		b, err := New(client, waiting(1), Options{Prefix: s.Prefix(t), Timeout: calm, OnOutage: policy})
		require.NoError(t, err)
		p := take(t, b)
		out := goAcquire(t, bg, b)
		closed(t, b)
		closed(t, b)
		check(<-out)
		q, err := b.Acquire(bg)
		check(result{&q, err})
		require.False(t, storeError(t, p.Settle(bg, leaf.Outcome{})).Rejected())
		require.NoError(t, client.Ping(bg).Err())
		require.EqualValues(t, 0, s.Do(t, "zcount", b.store.Key(), "-inf", "(0"), "it has left the line")
	}
}

func TestCloseFlushesWhatIsOnItsWay(t *testing.T) {
	b := fleet(t, 1, once(8), Options{})[0]
	var tokens []uint64
	for range 8 {
		take(t, b)
		token, _ := latest(b)
		tokens = append(tokens, token)
	}
	for _, token := range tokens {
		b.giveBack(token) // as Settle does, without waiting for the answer
	}
	closed(t, b)
	again := open(t, b.store.Client(), once(8), Options{Prefix: b.opts.Prefix, Timeout: calm})
	require.Zero(t, inUse(t, again))
}

func TestCloseIsBoundedByItsContextWhileTheServerIsSilent(t *testing.T) {
	s := redistest.Start(t)
	b, err := New(s.Client(t), once(1), Options{Timeout: calm})
	require.NoError(t, err)
	p := take(t, b)
	s.Pause(t)
	token, _ := latest(b)
	b.giveBack(token)
	ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.Close(ctx), context.DeadlineExceeded)
	s.Resume(t)
	closed(t, b)
	require.NoError(t, p.Settle(bg, leaf.Outcome{}))
}

func TestAHooksPanicReachesTheNextAcquireAndLosesNothing(t *testing.T) {
	s := redistest.Start(t)
	b := open(t, s.Client(t), once(1), Options{Timeout: calm, OnStore: func(_ context.Context, e leaf.StoreEvent) {
		if e.Kind == "failed" {
			panic("hook")
		}
	}})
	s.Kill(t)
	p := take(t, b)
	redistest.Eventually(t, "the panic arrives", func() (arrived bool) {
		defer func() { arrived = recover() == "hook" }()
		r, err := b.Acquire(bg)
		require.NoError(t, err)
		back(t, &r)
		return false
	})
	back(t, p)
	back(t, take(t, b))
}
