package leaf_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// tenant is the key's place in a context.
type tenant struct{}

func as(key string) context.Context { return context.WithValue(context.Background(), tenant{}, key) }

func tenantOf(ctx context.Context) string { key, _ := ctx.Value(tenant{}).(string); return key }

// kept is the guards that a Keyed made, and who may go.
type kept struct {
	made   []string
	guards map[string]*tally
	busy   map[string]bool // idle says no
	asked  []string        // idle's questions
}

func (k *kept) make(key string) (*tally, error) {
	k.made = append(k.made, key)
	g := &tally{}
	g.acquire = func(context.Context) error { return nil }
	k.guards[key] = g
	return g, nil
}

func (k *kept) idle(g *tally) bool {
	for key, other := range k.guards {
		if other == g {
			k.asked = append(k.asked, key)
			return !k.busy[key]
		}
	}
	panic("asked about a guard that nobody made")
}

func newKept(max int) (*kept, leaf.Guard) {
	k := &kept{guards: map[string]*tally{}, busy: map[string]bool{}}
	return k, leaf.Keyed(max, tenantOf, k.make, k.idle)
}

func enter(t *testing.T, g leaf.Guard, key string) *leaf.Permit {
	t.Helper()
	p := new(leaf.Permit)
	if err := acquireInto(p, g, as(key)); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return p
}

func acquireInto(p *leaf.Permit, g leaf.Guard, ctx context.Context) (err error) {
	*p, err = g.Acquire(ctx)
	return err
}

func call(t *testing.T, g leaf.Guard, key string) {
	t.Helper()
	settle(enter(t, g, key), leaf.Returned)
}

func wantNoRoom(t *testing.T, err error) {
	t.Helper()
	no, ok := errors.AsType[interface {
		error
		Rejected() bool
	}](err)
	require.True(t, ok, "%v", err)
	require.True(t, no.Rejected())
	require.ErrorContains(t, err, "no room for another key")
}

func TestKeyedIsOneGuardPerKey(t *testing.T) {
	k, g := newKept(2)
	for range 3 {
		call(t, g, "a")
		call(t, g, "b")
	}
	require.Equal(t, []string{"a", "b"}, k.made)
	require.Len(t, k.guards["a"].outcomes, 3)
	require.Len(t, k.guards["b"].outcomes, 3)
}

func TestKeyedPassesEverythingThrough(t *testing.T) {
	k, g := newKept(1)
	ctx := as("a")
	var p leaf.Permit
	require.NoError(t, acquireInto(&p, g, ctx))
	inner := k.guards["a"]
	inner.settle = func(leaf.Outcome) error { return errWork }
	o := leaf.Outcome{Verdict: leaf.TimedOut, Err: errCause, Took: 1, Given: 2}
	require.Equal(t, errWork, p.Settle(ctx, o), "Settle's error")
	require.Equal(t, o, inner.only(t))
	require.Equal(t, []context.Context{ctx}, inner.ctxs)
	require.Equal(t, []uint64{1}, inner.tokens)

	inner.acquire = func(got context.Context) error { require.Equal(t, ctx, got); return refusal{wait: 3} }
	err := acquireInto(&p, g, ctx)
	require.Equal(t, refusal{wait: 3}, err, "a refusal comes back unchanged")
	require.True(t, p == leaf.Permit{})
}

func TestKeyedDropsOnlyWhatIsIdleAndUnused(t *testing.T) {
	k, g := newKept(2)
	a := enter(t, g, "a")
	call(t, g, "b")

	k.busy["b"] = true
	wantNoRoom(t, acquireInto(new(leaf.Permit), g, as("c")))
	require.Equal(t, []string{"b"}, k.asked, "a is in use: nothing to ask")

	k.busy["b"] = false
	call(t, g, "c")
	require.Equal(t, []string{"a", "b", "c"}, k.made)

	// c is idle: d takes its place; a is still in use.
	d := enter(t, g, "d")
	wantNoRoom(t, acquireInto(new(leaf.Permit), g, as("b")))
	settle(a, leaf.NotRun)
	call(t, g, "b")
	require.Equal(t, []string{"a", "b", "c", "d", "b"}, k.made, "what was dropped is made anew")
	settle(d, leaf.Returned)
	require.Zero(t, k.guards["d"].inside)
}

func TestKeyedRefusalSaysNothingOfKeys(t *testing.T) {
	_, g := newKept(1)
	defer settle(enter(t, g, "a"), leaf.NotRun)
	err := acquireInto(new(leaf.Permit), g, as("secret"))
	require.EqualError(t, err, "leaf: Keyed: no room for another key: all 1 guards are in use or have a history to keep")
	hint, ok := errors.AsType[refusalWithHint](err)
	require.True(t, ok)
	_, ok = hint.RetryAfter()
	require.False(t, ok)
}

type refusalWithHint interface {
	error
	RetryAfter() (time.Duration, bool)
}

func TestKeyedEveryIdleGuardCanGo(t *testing.T) {
	k, g := newKept(10)
	for _, key := range strings.Split("abcdefghij", "") {
		call(t, g, key)
		k.busy[key] = true
	}
	for _, key := range strings.Split("jaebfcgdhi", "") {
		k.busy[key] = false
		call(t, g, "new "+key)
		k.busy["new "+key] = true
		wantNoRoom(t, acquireInto(new(leaf.Permit), g, as("none")))
	}
	require.Len(t, k.made, 20)
}

// A guard that was used while idle looked at it is not what idle saw.
func TestKeyedDoesNotDropWhatWasUsedMeanwhile(t *testing.T) {
	var g leaf.Guard
	var made []string
	g = leaf.Keyed(1, tenantOf,
		func(key string) (*tally, error) { made = append(made, key); return &tally{}, nil },
		func(*tally) bool { call(t, g, "a"); return true })
	call(t, g, "a")
	wantNoRoom(t, acquireInto(new(leaf.Permit), g, as("b")))
	call(t, g, "a")
	require.Equal(t, []string{"a"}, made)
}

// Two calls may find the same idle guard: only one gets its place, the other looks on.
func TestKeyedDropsEachGuardOnce(t *testing.T) {
	var g leaf.Guard
	var made []string
	nested := false
	g = leaf.Keyed(2, tenantOf,
		func(key string) (*tally, error) { made = append(made, key); return &tally{}, nil },
		func(*tally) bool {
			if !nested {
				nested = true
				call(t, g, "rival") // takes the place that is being asked about
			}
			return true
		})
	call(t, g, "a")
	call(t, g, "b")
	call(t, g, "c")
	require.Equal(t, []string{"a", "b", "rival", "c"}, made)
	call(t, g, "rival")
	call(t, g, "c")
	require.Len(t, made, 4, "both are there")
	call(t, g, "b")
	require.Len(t, made, 5, "b is not")
}

// Where all may go, the newest is the last: keys that come once must not push out each other for ever and nobody else.
func TestKeyedDropsInTurn(t *testing.T) {
	k, g := newKept(3)
	for _, key := range strings.Split("abcdefg", "") {
		call(t, g, key)
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, k.asked)
}

func TestKeyedPanickingIdleHoldsNothing(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			bad := true
			g := leaf.Keyed(1, tenantOf,
				func(string) (*tally, error) { return &tally{}, nil },
				func(*tally) bool {
					if bad {
						end()
					}
					return true
				})
			call(t, g, "a")
			wantUnwound(t, how, func() { _ = acquireInto(new(leaf.Permit), g, as("b")) })
			call(t, g, "a")
			bad = false
			call(t, g, "b")
		})
	}
}

func TestKeyedPanickingGuardIsLeft(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			k, g := newKept(1)
			call(t, g, "a")

			k.guards["a"].acquire = func(context.Context) error { end(); return nil }
			wantUnwound(t, how, func() { _ = acquireInto(new(leaf.Permit), g, as("a")) })
			require.Equal(t, 0.0, inUse(g))

			k.guards["a"].acquire = nil
			p := enter(t, g, "a")
			k.guards["a"].settle = func(leaf.Outcome) error { end(); return nil }
			wantUnwound(t, how, func() { settle(p, leaf.Returned) })
			require.Equal(t, 0.0, inUse(g))
			call(t, g, "b") // a could go
		})
	}
}

func inUse(g leaf.Guard) float64 { return g.(leaf.Inspector).Inspect().Gauges[1].Value }

func TestKeyedDoneContextTakesNothing(t *testing.T) {
	asked := 0
	g := leaf.Keyed(1,
		func(context.Context) string { asked++; return "a" },
		func(string) (*triable, error) { asked++; return &triable{}, nil },
		func(*triable) bool { asked++; return true })
	for _, acquire := range []func(context.Context) (leaf.Permit, error){g.Acquire, g.(leaf.Trier).TryAcquire} {
		_, err := acquire(done(errCause))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errCause)
	}
	require.Zero(t, asked, "no key, no guard")
}

func TestKeyedBadArgumentsAreErrorsOfEveryAcquire(t *testing.T) {
	g := leaf.Keyed[string, *triable](0, nil, nil, nil)
	for range 2 {
		for _, acquire := range []func(context.Context) (leaf.Permit, error){g.Acquire, g.(leaf.Trier).TryAcquire} {
			_, err := acquire(t.Context())
			require.EqualError(t, err, "leaf: Keyed's max is 0: want 1 or more\nleaf: Keyed's key is nil: want a function\n"+
				"leaf: Keyed's make is nil: want a function\nleaf: Keyed's idle is nil: want a function")
		}
	}
	// The rest answers as if there were no guard.
	require.Equal(t, leaf.Snapshot{Kind: "keyed", Gauges: []leaf.Gauge{{Name: "keys"}, {Name: "in_use"}}}, g.(leaf.Inspector).Inspect())
	g.(leaf.Hinter).Hint(t.Context(), 1)
	require.Zero(t, g.(leaf.Leaser).Lease())

	k := &kept{guards: map[string]*tally{}}
	for field, g := range map[string]leaf.Guard{
		"max is -1":   leaf.Keyed(-1, tenantOf, k.make, k.idle),
		"key is nil":  leaf.Keyed(1, nil, func(string) (*tally, error) { return nil, nil }, k.idle),
		"make is nil": leaf.Keyed(1, tenantOf, nil, k.idle),
		"idle is nil": leaf.Keyed(1, tenantOf, k.make, nil),
	} {
		require.ErrorContains(t, acquireInto(new(leaf.Permit), g, as("a")), field)
	}
	require.Empty(t, k.made)
}

func TestKeyedHugeMaxCostsNothing(t *testing.T) {
	k, g := newKept(math.MaxInt)
	call(t, g, "a")
	require.Len(t, k.made, 1)
}

func TestKeyedKeyThatIsNeverFoundAgain(t *testing.T) {
	asked := 0
	g := leaf.Keyed(1,
		func(context.Context) float64 { return math.NaN() },
		func(float64) (*tally, error) { asked++; return &tally{}, nil },
		func(*tally) bool { return true })
	for range 3 {
		require.ErrorContains(t, acquireInto(new(leaf.Permit), g, t.Context()), "NaN")
	}
	require.Zero(t, asked)
}

func TestKeyedUncomparableKeyPanicsWithNothingHeld(t *testing.T) {
	g := leaf.Keyed(1,
		func(ctx context.Context) any {
			if tenantOf(ctx) == "bad" {
				return []int{1}
			}
			return tenantOf(ctx)
		},
		func(any) (*tally, error) { return &tally{}, nil },
		func(*tally) bool { return true })
	call(t, g, "a")
	require.Panics(t, func() { _ = acquireInto(new(leaf.Permit), g, as("bad")) })
	call(t, g, "b")
}

func TestKeyedInspect(t *testing.T) {
	_, g := newKept(3)
	a1, a2, b := enter(t, g, "a"), enter(t, g, "a"), enter(t, g, "b")
	show := func(keys, inUse float64) leaf.Snapshot {
		return leaf.Snapshot{Kind: "keyed", Gauges: []leaf.Gauge{
			{Name: "keys", Value: keys, Limit: 3}, {Name: "in_use", Value: inUse},
		}}
	}
	require.Equal(t, show(2, 3), g.(leaf.Inspector).Inspect())
	for _, p := range []*leaf.Permit{a1, a2, b} {
		settle(p, leaf.Returned)
	}
	require.Equal(t, show(2, 0), g.(leaf.Inspector).Inspect())
}

func TestKeyedAllocatesNothing(t *testing.T) {
	ctx := as("a")
	for name, g := range map[string]leaf.Guard{
		"a pointer": leaf.Keyed(1, tenantOf, func(string) (*opener, error) { return &opener{}, nil }, func(*opener) bool { return true }),
		"a value":   leaf.Keyed(1, tenantOf, func(string) (open, error) { return open{}, nil }, func(open) bool { return true }),
		"a shadow": leaf.Keyed(1, tenantOf, func(string) (leaf.Guard, error) { return leaf.Shadow(open{}, nil), nil },
			func(leaf.Guard) bool { return true }),
	} {
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			v, err := leaf.Do(ctx, g, succeed)
			if v != 1 || err != nil {
				panic(err)
			}
		}), name)
		if trier, ok := g.(leaf.Trier); ok {
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				p, err := trier.TryAcquire(ctx)
				if err != nil {
					panic(err)
				}
				settle(&p, leaf.Returned)
			}), name)
		}
	}
}

// opener is open as a pointer.
type opener struct {
	open
	_ int
}
