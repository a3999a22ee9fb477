package leaf_test

import (
	"context"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// Guards that can do one thing more each.
type (
	triable  struct{ tally }
	peekable struct {
		tally
		refuse error
	}
	hintable struct {
		tally
		hints []time.Duration
		ctx   context.Context
	}
	leasing struct {
		tally
		lease time.Duration
	}
	occupying struct{ tally }
	able      struct {
		triable
		refuse error
	}
)

func (g *triable) TryAcquire(ctx context.Context) (leaf.Permit, error) { return g.Acquire(ctx) }
func (g *peekable) Peek(context.Context) error                         { return g.refuse }
func (g *hintable) Hint(ctx context.Context, wait time.Duration) {
	g.ctx, g.hints = ctx, append(g.hints, wait)
}
func (g *leasing) Lease() time.Duration    { return g.lease }
func (g *occupying) Occupies() bool        { return true }
func (g *able) Peek(context.Context) error { return g.refuse }

// keyedOf is a Keyed of one G for every key.
func keyedOf[G leaf.Guard](max int, g G) leaf.Guard {
	return leaf.Keyed(max, tenantOf, func(string) (G, error) { return g, nil }, func(G) bool { return true })
}

func TestKeyedIsWhatItsGuardsAre(t *testing.T) {
	type abilities struct{ try, peek, occupies, took bool }
	for name, row := range map[string]struct {
		g    leaf.Guard
		want abilities
	}{
		"plain":     {keyedOf(1, &tally{}), abilities{}},
		"trier":     {keyedOf(1, &triable{}), abilities{try: true}},
		"peeker":    {keyedOf(1, &peekable{}), abilities{peek: true}},
		"both":      {keyedOf(1, &able{}), abilities{try: true, peek: true}},
		"occupier":  {keyedOf(1, &occupying{}), abilities{occupies: true}},
		"timed":     {keyedOf(1, &timedTally{}), abilities{took: true}},
		"interface": {keyedOf[leaf.Guard](1, &able{}), abilities{}}, // its static type hides what it is
		"shadow":    {keyedOf[leaf.Guard](1, leaf.Shadow(&triable{}, nil)), abilities{}},
		"rich interface": {keyedOf[interface {
			leaf.Guard
			leaf.Trier
		}](1, &able{}), abilities{try: true}},
	} {
		var got abilities
		_, got.try = row.g.(leaf.Trier)
		_, got.peek = row.g.(leaf.Peeker)
		got.occupies = row.g.(leaf.Occupier).Occupies()
		got.took = row.g.(leaf.Timed).WantsTook()
		require.Equal(t, row.want, got, name)
	}
}

func TestKeyedTryAcquireAsksTheGuardsOwn(t *testing.T) {
	inner := &triesOnly{}
	g := keyedOf(1, inner)
	p, err := g.(leaf.Trier).TryAcquire(as("a"))
	require.NoError(t, err)
	settle(&p, leaf.NotRun)
	require.Equal(t, 1, inner.tried)
	_, err = g.(leaf.Trier).TryAcquire(as("a"))
	require.Equal(t, refusal{}, err)
	require.Equal(t, 0.0, inUse(g))
}

// triesOnly admits the first TryAcquire; its Acquire is a mistake.
type triesOnly struct{ tried int }

func (*triesOnly) Acquire(context.Context) (leaf.Permit, error) { panic("asked to wait") }
func (g *triesOnly) TryAcquire(context.Context) (leaf.Permit, error) {
	if g.tried++; g.tried > 1 {
		return leaf.Permit{}, refusal{}
	}
	return leaf.Permit{}, nil
}

func TestKeyedOfAGuardThatTriesAndPeeks(t *testing.T) {
	inner := &able{refuse: refusal{}}
	g := keyedOf(1, inner)
	p, err := g.(leaf.Trier).TryAcquire(as("a"))
	require.NoError(t, err)
	settle(&p, leaf.Returned)
	inner.only(t)
	require.Equal(t, refusal{}, g.(leaf.Peeker).Peek(as("a")))
}

func TestKeyedPeek(t *testing.T) {
	guards := map[string]*peekable{}
	busy := false
	g := leaf.Keyed(2, tenantOf,
		func(key string) (*peekable, error) {
			guards[key] = &peekable{refuse: refusal{}}
			return guards[key], nil
		},
		func(*peekable) bool { return !busy })
	peek := g.(leaf.Peeker).Peek

	require.NoError(t, peek(as("a")), "a guard that is yet to be made admits, as far as anybody knows")
	require.Empty(t, guards, "and peeking makes none")
	call(t, g, "a")
	require.Equal(t, refusal{}, peek(as("a")), "its own guard's word")
	guards["a"].refuse = nil
	require.NoError(t, peek(as("a")))

	call(t, g, "b")
	require.NoError(t, peek(as("c")), "there would be room")
	busy = true
	wantNoRoom(t, peek(as("c")))
	require.Len(t, guards, 2)
	require.NoError(t, peek(as("a")))

	bad := leaf.Keyed[string, *peekable](0, nil, nil, nil)
	require.NoError(t, bad.(leaf.Peeker).Peek(t.Context()), "a bad argument is an error, no refusal")
	nan := leaf.Keyed(1, func(context.Context) float64 { return nan() },
		func(float64) (*peekable, error) { return nil, nil }, func(*peekable) bool { return true })
	require.NoError(t, nan.(leaf.Peeker).Peek(t.Context()))
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestKeyedHint(t *testing.T) {
	guards := map[string]*hintable{}
	busy := false
	g := leaf.Keyed(1, tenantOf,
		func(key string) (*hintable, error) {
			if key == "bad" {
				return nil, errWork
			}
			guards[key] = &hintable{}
			return guards[key], nil
		},
		func(*hintable) bool { return !busy })
	hint := g.(leaf.Hinter).Hint

	hint(as("a"), 0)
	hint(as("a"), -time.Second)
	require.Empty(t, guards, "a hint of nothing changes nothing")

	hint(as("a"), time.Second)
	require.Equal(t, []time.Duration{time.Second}, guards["a"].hints, "a guard that is gone is made to hear it")
	require.Equal(t, "a", tenantOf(guards["a"].ctx))
	require.Equal(t, 0.0, inUse(g))

	gone, cancel := context.WithCancel(as("a"))
	cancel()
	hint(gone, time.Minute)
	require.Len(t, guards["a"].hints, 2, "what the other side asked for holds when the caller is gone")

	busy = true
	hint(as("b"), time.Second) // nobody to tell it to: a's history is kept
	require.Len(t, guards, 1)
	require.Len(t, guards["a"].hints, 2)
	busy = false
	hint(as("bad"), time.Second) // nor here
	require.Len(t, guards, 1)
}

func TestKeyedHintMakesNoGuardThatCannotHear(t *testing.T) {
	k, g := newKept(1)
	g.(leaf.Hinter).Hint(as("a"), time.Second)
	require.Empty(t, k.made)
}

func TestKeyedLeaseIsTheShortest(t *testing.T) {
	leases := map[string]time.Duration{"forever": 0, "off": -1, "long": time.Hour, "short": time.Second}
	g := leaf.Keyed(4, tenantOf,
		func(key string) (*leasing, error) { return &leasing{lease: leases[key]}, nil },
		func(*leasing) bool { return true })
	lease := g.(leaf.Leaser).Lease
	require.Zero(t, lease(), "no guard yet: nothing to check")
	for _, row := range []struct {
		key  string
		want time.Duration
	}{{"forever", 0}, {"off", 0}, {"long", time.Hour}, {"short", time.Second}} {
		call(t, g, row.key)
		require.Equal(t, row.want, lease(), row.key)
	}
}
