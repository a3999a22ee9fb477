package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fair(time.Duration) weather { return weather{} }

func newInstance(workers int) *instance {
	return &instance{weather: fair, free: make([]time.Duration, workers), rand: rand.New(rand.NewPCG(1, 1))}
}

// feed sends so many requests per second for so long, from an instant on, and returns them.
func (n *instance) feed(perSecond int, from, lasts time.Duration) (all []*request) {
	for at := from; at < from+lasts; at += time.Second / time.Duration(perSecond) {
		r := &request{arrives: at}
		n.take(r)
		all = append(all, r)
	}
	return all
}

func latency(r *request) time.Duration { return r.ends - r.arrives }

func TestBelowItsCapacityAnInstanceAnswersInItsServiceTime(t *testing.T) {
	for _, r := range newInstance(4).feed(60, 0, time.Minute) {
		require.NoError(t, r.err)
		require.InDelta(t, service, latency(r), float64(service)/5)
	}
}

func TestLatencyGrowsWithLoad(t *testing.T) {
	n := newInstance(4)
	all := n.feed(120, 0, 2*time.Second) // half as much again as it can do
	require.InDelta(t, service, latency(all[0]), float64(service)/5)
	require.Greater(t, latency(all[len(all)-1]), 10*service)
}

func TestItCollapsesAboveAKneeAndTurnsAwayWhatDoesNotFit(t *testing.T) {
	n := newInstance(4)
	all := n.feed(400, 0, 10*time.Second)
	done := 0
	for _, r := range all {
		if r.err == nil {
			done++
			continue
		}
		require.Equal(t, &statusError{code: 503}, r.err)
		require.Equal(t, quick, latency(r))
	}
	require.LessOrEqual(t, len(n.within), 4*depth)
	require.InDelta(t, 80*10/1.5, done-4*depth, 80, "a third of what it could do is lost")
}

// The very same load that it bears with an empty queue, it does not bear with a full one: that is metastable.
func TestItRecoversOnlyWhenLoadFalls(t *testing.T) {
	n := newInstance(4)
	n.feed(400, 0, 5*time.Second)
	for _, r := range n.feed(70, 5*time.Second, 20*time.Second) {
		if r.err == nil { // not turned away
			require.Greater(t, latency(r), time.Second)
		}
	}
	n.feed(20, 25*time.Second, 20*time.Second)
	for _, r := range n.feed(70, 45*time.Second, 20*time.Second) {
		require.Less(t, latency(r), 2*service)
	}
}

func TestACrashBreaksWhatIsInsideAndLeavesNothingBehind(t *testing.T) {
	n := newInstance(1)
	n.crashes = []time.Duration{time.Second}
	all := n.feed(100, 900*time.Millisecond, 200*time.Millisecond)
	ended := map[time.Duration]bool{}
	for i, r := range all {
		before := r.arrives < time.Second
		if i < 2 || !before {
			continue
		}
		require.ErrorIs(t, r.err, errReset, "%d", i)
		require.Less(t, r.ends-time.Second, time.Millisecond)
		require.False(t, ended[r.ends], "one after another")
		ended[r.ends] = true
	}
	require.InDelta(t, service, latency(all[10]), float64(service)/5, "the first of the new process waits for nobody")
}

func TestWorkIsAsSlowAsItIsWhenItBegins(t *testing.T) {
	n := newInstance(1)
	n.weather = func(at time.Duration) weather {
		if at < time.Second {
			return weather{slower: 10_000}
		}
		return weather{}
	}
	var last *request
	for range 5 { // half a second each; the last three begin after the second is over
		last = &request{arrives: 0}
		n.take(last)
	}
	require.InDelta(t, 1.15, last.ends.Seconds(), 0.35)
}

// A caller who has left does not change what the downstream does; that is counted as wasted.
func TestWorkForCallersWhoHaveLeftIsWasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storm{seed: 1, sc: scenarioOf("slowdown"), epoch: time.Now().Add(-faultBegins)}
		s.tally, s.down = newTally(s), newDownstream(s)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, s.down.call(ctx, 7), context.DeadlineExceeded)
		require.Equal(t, faultBegins+100*time.Millisecond, s.now())
		assert.Equal(t, 1, s.tally.totals[wasted])
		assert.Equal(t, 1, s.tally.totals[served])
		require.ErrorIs(t, s.down.call(ctx, 8), context.DeadlineExceeded, "gone before it arrived")
		require.NoError(t, s.down.call(t.Context(), 9))
		assert.Equal(t, 3, s.tally.totals[attempts], "it had been sent")
		assert.Equal(t, 1, s.tally.totals[wasted])
	})
}

// Which of an instant's requests is first is decided by their ids, whoever runs first.
func TestRequestsOfOneInstantAreTakenInTheOrderOfTheirIDs(t *testing.T) {
	results := map[[2]time.Duration]bool{}
	for _, order := range [][]uint64{{1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1}, {3, 8, 1, 6, 2, 7, 4, 5}} {
		synctest.Test(t, func(t *testing.T) {
			s := &storm{seed: 1, sc: scenarioOf("slowdown"), epoch: time.Now()}
			s.tally, s.down = newTally(s), newDownstream(s)
			took := make([]time.Duration, 9)
			var all sync.WaitGroup
			for _, id := range order {
				all.Go(func() {
					if err := s.down.call(t.Context(), id); err != nil {
						t.Error(err)
					}
					took[id] = s.now()
				})
			}
			all.Wait()
			results[[2]time.Duration{took[1], took[8]}] = true
		})
	}
	require.Len(t, results, 1)
}

func TestOnlyStatusAndRetryAfterGoOverTheWire(t *testing.T) {
	assert.NoError(t, overTheWire(nil))
	assert.Equal(t, &statusError{code: 502}, overTheWire(errReset))
	assert.Equal(t, &statusError{code: 502, wait: 2 * time.Second, asked: true},
		overTheWire(&statusError{code: 429, wait: 1200 * time.Millisecond, asked: true}), "whole seconds, rounded up")
	assert.Equal(t, &statusError{code: 504}, overTheWire(errors.Join(errReset, context.DeadlineExceeded)))
	assert.ErrorIs(t, overTheWire(context.Canceled), context.Canceled, "the caller hung up")
}
