package leaf

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var ops = flag.Int("ops", 100_000, "operations of each model test")

// modelGuard is a guard whose history the model writes.
type modelGuard struct {
	key    int
	owes   bool // idle says no
	refuse bool
	inside int
}

var errModel = errors.New("refused by the model")

func (g *modelGuard) Acquire(context.Context) (Permit, error) {
	if g.refuse {
		return Permit{}, errModel
	}
	g.inside++
	return NewPermit(g, uint64(g.key)), nil
}

func (g *modelGuard) TryAcquire(ctx context.Context) (Permit, error) { return g.Acquire(ctx) }

func (g *modelGuard) Settle(_ context.Context, token uint64, _ Outcome) error {
	if token != uint64(g.key) {
		panic("a permit of another guard")
	}
	g.inside--
	return nil
}

// TestKeyedModel replays random calls against a naive reference: a map of the guards that must exist.
func TestKeyedModel(t *testing.T) {
	seed := rand.Uint64()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	rnd := rand.New(rand.NewPCG(seed, 0))
	type held struct {
		g *modelGuard
		p *Permit
	}
	for n := 0; n < *ops; {
		max, keys := 1+rnd.IntN(5), 1+rnd.IntN(8)
		var key int
		failing := false
		exist := map[int]*modelGuard{} // the reference
		var made *modelGuard
		k := Keyed(max, func(context.Context) int { return key },
			func(key int) (*modelGuard, error) {
				if failing {
					return nil, errModel
				}
				made = &modelGuard{key: key}
				return made, nil
			},
			func(g *modelGuard) bool { return !g.owes }).(tryKeyed[int, *modelGuard])
		var calls []held
		for range 1000 {
			n++
			key, made = rnd.IntN(keys), nil
			switch op := rnd.IntN(10); {
			case op < 5: // a call begins
				failing = rnd.IntN(10) == 0
				before := exist[key]
				room := len(exist) < max
				evictable := map[int]bool{}
				for other, g := range exist {
					if g.inside == 0 && !g.owes {
						evictable[other] = true
					}
				}
				p := new(Permit)
				var err error
				if op == 0 {
					*p, err = k.TryAcquire(t.Context())
				} else {
					*p, err = k.Acquire(t.Context())
				}
				var full *noRoomError
				switch {
				case before != nil:
					require.Nil(t, made, "it exists")
					require.Equal(t, before.refuse, err != nil)
				case !room && len(evictable) == 0:
					require.ErrorAs(t, err, &full)
					require.Nil(t, made)
				default:
					require.NotErrorAs(t, err, &full)
					require.Equal(t, failing, made == nil)
					require.Equal(t, failing, err != nil)
					if made != nil {
						exist[key] = made
					}
					if !room {
						gone := missing(k.keyed, exist, evictable)
						require.Len(t, gone, 1, "exactly one that was idle and unused had to go")
						delete(exist, gone[0])
					}
				}
				if err == nil {
					calls = append(calls, held{exist[key], p})
				} else {
					require.Equal(t, Permit{}, NewPermit(p.settler, p.token))
				}
			case op < 8: // a call ends
				if len(calls) == 0 {
					continue
				}
				i := rnd.IntN(len(calls))
				was := calls[i].g.inside
				require.NoError(t, calls[i].p.Settle(t.Context(), Outcome{}))
				require.Equal(t, was-1, calls[i].g.inside, "its own guard is told")
				calls[i] = calls[len(calls)-1]
				calls = calls[:len(calls)-1]
			default: // a guard's history changes
				if g := exist[key]; g != nil {
					g.owes, g.refuse = rnd.IntN(2) == 0, rnd.IntN(4) == 0
				}
			}
			require.NoError(t, agree(k.keyed, exist))
		}
	}
}

// missing is which of the evictable guards are gone.
func missing(k *keyed[int, *modelGuard], exist map[int]*modelGuard, evictable map[int]bool) (gone []int) {
	for key := range evictable {
		if e := k.guards.byKey[key]; e == nil || e.guard != exist[key] {
			gone = append(gone, key)
		}
	}
	return gone
}

// agree compares the table with the reference, and with itself.
func agree(k *keyed[int, *modelGuard], exist map[int]*modelGuard) error {
	t := &k.guards
	if len(t.byKey) != len(exist) || len(t.all) != len(exist) || len(exist) > t.max {
		return fmt.Errorf("%d and %d entries, the model has %d of at most %d", len(t.byKey), len(t.all), len(exist), t.max)
	}
	for i, e := range t.all {
		if e.index != i || t.byKey[e.key] != e {
			return fmt.Errorf("entry %d has index %d, and the map has another", i, e.index)
		}
		if exist[e.key] != e.guard || e.inside != e.guard.inside {
			return fmt.Errorf("key %d: %d inside, the model has another guard, or %d", e.key, e.inside, e.guard.inside)
		}
	}
	return nil
}

// A permit that was copied against all advice settles once, and never for the next call that got the same admission.
func TestKeyedStaleTokenSettlesNothing(t *testing.T) {
	g := &modelGuard{key: 7}
	k := Keyed(1, func(context.Context) int { return 7 }, func(int) (*modelGuard, error) { return g, nil },
		func(*modelGuard) bool { return true })
	first, err := k.Acquire(t.Context())
	require.NoError(t, err)
	stale := NewPermit(first.settler, first.token)
	require.NoError(t, first.Settle(t.Context(), Outcome{}))
	second, err := k.Acquire(t.Context())
	require.NoError(t, err)
	require.Same(t, stale.settler, second.settler, "the admission is used again")
	require.NoError(t, stale.Settle(t.Context(), Outcome{}))
	require.Equal(t, 1, g.inside)
	require.NoError(t, second.Settle(t.Context(), Outcome{}))
	require.Zero(t, g.inside)
}

// stressGuard checks from inside what Keyed promises.
type stressGuard struct {
	inside atomic.Int64
	owes   atomic.Bool
}

func (g *stressGuard) Acquire(context.Context) (Permit, error) {
	g.inside.Add(1)
	return NewPermit(g, 0), nil
}

func (g *stressGuard) Settle(context.Context, uint64, Outcome) error {
	g.inside.Add(-1)
	return nil
}

// TestKeyedStress: however many calls of however many keys race, no guard is made while the one before it is in use or
// owes something, and no more than limit are in use.
func TestKeyedStress(t *testing.T) {
	const limit, keys, goroutines, rounds = 3, 8, 8, 5000
	var (
		latest   [keys]atomic.Pointer[stressGuard]
		forgot   atomic.Int64
		admitted atomic.Int64
	)
	k := Keyed(limit, func(ctx context.Context) int { return ctx.Value(stressKey{}).(int) },
		func(key int) (*stressGuard, error) {
			g := new(stressGuard)
			if old := latest[key].Swap(g); old != nil && (old.inside.Load() != 0 || old.owes.Load()) {
				forgot.Add(1)
			}
			return g, nil
		},
		func(g *stressGuard) bool { return !g.owes.Load() })
	ctxs := make([]context.Context, keys)
	for i := range ctxs {
		ctxs[i] = context.WithValue(t.Context(), stressKey{}, i)
	}
	var mu sync.Mutex
	users, most := map[int]int{}, 0
	use := func(key, n int) {
		mu.Lock()
		defer mu.Unlock()
		if users[key] += n; users[key] == 0 {
			delete(users, key)
		}
		most = max(most, len(users))
	}
	var running sync.WaitGroup
	for n := range goroutines {
		running.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(n), 1))
			for range rounds {
				key := rnd.IntN(keys)
				p, err := k.Acquire(ctxs[key])
				if err != nil {
					continue
				}
				admitted.Add(1)
				use(key, 1)
				latest[key].Load().owes.Store(rnd.IntN(8) == 0)
				use(key, -1)
				_ = p.Settle(ctxs[key], Outcome{})
			}
		})
	}
	running.Wait()
	require.Zero(t, forgot.Load())
	require.LessOrEqual(t, most, limit)
	require.NotZero(t, admitted.Load())
	snapshot := k.(*keyed[int, *stressGuard]).Inspect()
	require.LessOrEqual(t, snapshot.Gauges[0].Value, float64(limit))
	require.Zero(t, snapshot.Gauges[1].Value)
}

type stressKey struct{}
