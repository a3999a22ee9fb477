package leaf_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// leasingTrier is what TestKeyedMakesOncePerKey asks while it is being made.
type leasingTrier struct{ triable }

func (*leasingTrier) Lease() time.Duration { return time.Hour }

func always[G any](G) bool { return true }

func TestKeyedMakesOncePerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		gate := make(chan struct{})
		inner := &leasingTrier{}
		g := leaf.Keyed(1, tenantOf, func(string) (*leasingTrier, error) {
			made.Add(1)
			<-gate
			return inner, nil
		}, always)
		var wg sync.WaitGroup
		for i := range 100 {
			acquire := g.Acquire
			if i%2 == 0 {
				acquire = g.(leaf.Trier).TryAcquire
			}
			wg.Go(func() {
				p, err := acquire(as("a"))
				if err != nil {
					panic(err)
				}
				settle(&p, leaf.Returned)
			})
		}
		synctest.Wait()
		require.Equal(t, int64(1), made.Load())
		require.Equal(t, 100.0, inUse(g))
		require.Zero(t, g.(leaf.Leaser).Lease(), "what is being made has nothing to say yet")
		close(gate)
		wg.Wait()
		require.Len(t, inner.outcomes, 100)
		require.Equal(t, time.Hour, g.(leaf.Leaser).Lease())
		require.Equal(t, 0.0, inUse(g))
	})
}

// make runs outside every lock of other keys.
func TestKeyedMakeHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		g := leaf.Keyed(2, tenantOf, func(key string) (*peekable, error) {
			if key == "slow" {
				<-gate
			}
			return &peekable{}, nil
		}, always)
		call(t, g, "old")
		var wg sync.WaitGroup
		wg.Go(func() { call(t, g, "slow") })
		synctest.Wait()

		call(t, g, "old")
		call(t, g, "new") // in old's place: a guard in the making is in use
		require.NoError(t, g.(leaf.Peeker).Peek(as("slow")))
		g.(leaf.Inspector).Inspect()
		defer settle(enter(t, g, "new"), leaf.NotRun)
		wantNoRoom(t, acquireInto(new(leaf.Permit), g, as("third")))
		close(gate)
		wg.Wait()
	})
}

func TestKeyedMakeErrorIsNotRemembered(t *testing.T) {
	var errs []error = []error{errWork, refusal{}, nil}
	g := leaf.Keyed(1, tenantOf, func(string) (*tally, error) {
		err := errs[0]
		errs = errs[1:]
		return &tally{}, err
	}, always)
	var p leaf.Permit
	require.Equal(t, errWork, acquireInto(&p, g, as("a")), "unchanged")
	require.True(t, p == leaf.Permit{})
	require.Equal(t, leaf.Gauge{Name: "keys", Limit: 1}, g.(leaf.Inspector).Inspect().Gauges[0], "and takes no room")
	require.Equal(t, refusal{}, acquireInto(&p, g, as("b")))
	call(t, g, "a")
}

func TestKeyedNoGuardIsAnError(t *testing.T) {
	g := leaf.Keyed(1, tenantOf, func(string) (*tally, error) { return nil, nil }, always)
	require.ErrorContains(t, acquireInto(new(leaf.Permit), g, as("a")), "neither a guard nor an error")
	g = leaf.Keyed(1, tenantOf, func(string) (leaf.Guard, error) { return nil, nil }, always)
	require.ErrorContains(t, acquireInto(new(leaf.Permit), g, as("a")), "neither a guard nor an error")
}

func TestKeyedMakeErrorIsSharedByWhoWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		made := 0
		g := leaf.Keyed(1, tenantOf, func(string) (*tally, error) {
			made++
			<-gate
			return nil, errWork
		}, always)
		errs := make([]error, 10)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = acquireInto(new(leaf.Permit), g, as("a")) })
		}
		synctest.Wait()
		close(gate)
		wg.Wait()
		for _, err := range errs {
			require.Equal(t, errWork, err)
		}
		require.Equal(t, 1, made)
		require.Equal(t, 0.0, inUse(g))
	})
}

// Whoever waited for a make that did not return tries next; the panic is its own caller's alone.
func TestKeyedMakePanicPoisonsNothing(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				made := 0
				inner := &tally{}
				g := leaf.Keyed(1, tenantOf, func(string) (*tally, error) {
					if made++; made == 1 {
						<-gate
						end()
					}
					return inner, nil
				}, always)
				var first, rest sync.WaitGroup
				first.Go(func() { wantUnwound(t, how, func() { _ = acquireInto(new(leaf.Permit), g, as("a")) }) })
				synctest.Wait()
				for range 10 {
					rest.Go(func() { call(t, g, "a") })
				}
				synctest.Wait()
				close(gate)
				first.Wait()
				rest.Wait()
				require.Equal(t, 2, made)
				require.Len(t, inner.outcomes, 10)
				require.Equal(t, 0.0, inUse(g))
			})
		})
	}
}

func TestKeyedWaitForMakeEndsWithCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		g := leaf.Keyed(1, tenantOf, func(string) (*tally, error) { <-gate; return &tally{}, nil }, always)
		var maker, waiter sync.WaitGroup
		maker.Go(func() { call(t, g, "a") })
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(as("a"))
		var err error
		waiter.Go(func() { err = acquireInto(new(leaf.Permit), g, ctx) })
		synctest.Wait()
		require.Equal(t, 2.0, inUse(g))
		cancel(errCause)
		waiter.Wait()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errCause)
		require.Equal(t, 1.0, inUse(g), "nothing of it is left")
		close(gate)
		maker.Wait()
	})
}

// A call that waits in its guard keeps it.
func TestKeyedDoesNotDropWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		k, g := newKept(1)
		call(t, g, "a")
		k.guards["a"].acquire = func(context.Context) error { <-gate; return nil }
		var wg sync.WaitGroup
		wg.Go(func() { call(t, g, "a") })
		synctest.Wait()
		wantNoRoom(t, acquireInto(new(leaf.Permit), g, as("b")))
		close(gate)
		wg.Wait()
		call(t, g, "b")
	})
}
