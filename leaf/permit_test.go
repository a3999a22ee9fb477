package leaf_test

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func TestPermitSettlesExactlyOnce(t *testing.T) {
	var g tally
	g.inside, g.settle = 1, func(leaf.Outcome) error { return errWork }
	p := leaf.NewPermit(&g, 42)
	ctx := context.WithValue(t.Context(), ctxKey{}, 1)
	o := leaf.Outcome{Verdict: leaf.TimedOut, Err: errCause, Took: 3, Given: 4}

	require.Equal(t, errWork, p.Settle(ctx, o), "the Settler's own error")
	require.Equal(t, o, g.only(t))
	require.Equal(t, []uint64{42}, g.tokens)
	require.Equal(t, []context.Context{ctx}, g.ctxs)

	require.NoError(t, p.Settle(ctx, o), "the second Settle does nothing")
	require.Len(t, g.outcomes, 1)
}

type ctxKey struct{}

func TestZeroPermitSettlesNothing(t *testing.T) {
	var p leaf.Permit
	require.NoError(t, p.Settle(t.Context(), leaf.Outcome{}))
	p = leaf.NewPermit(nil, 7)
	require.True(t, p == leaf.Permit{}, "a nil Settler makes the zero Permit")
	require.NoError(t, p.Settle(t.Context(), leaf.Outcome{}))
}

func TestPermitIsZeroWhenSettlePanics(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			var g tally
			g.inside, g.settle = 1, func(leaf.Outcome) error { end(); return nil }
			p := leaf.NewPermit(&g, 1)
			wantUnwound(t, how, func() { settle(&p, leaf.Returned) })
			require.True(t, p == leaf.Permit{})
			settle(&p, leaf.Returned)
			g.only(t)
		})
	}
}

// The permit is zero before its Settler is called, not after: a Settler that reaches it again settles nothing.
func TestPermitIsZeroWhileItSettles(t *testing.T) {
	var g tally
	var p leaf.Permit
	g.inside, g.settle = 1, func(leaf.Outcome) error { settle(&p, leaf.Returned); return nil }
	p = leaf.NewPermit(&g, 1)
	settle(&p, leaf.Returned)
	g.only(t)
}

// go vet's copylocks looks for a pointer method Lock and Unlock; a field without them would guard nothing.
func TestVetFindsPermitCopies(t *testing.T) {
	first := reflect.TypeFor[leaf.Permit]().Field(0).Type
	require.True(t, reflect.PointerTo(first).Implements(reflect.TypeFor[sync.Locker]()))
	require.Zero(t, first.Size())
}

func TestPermitAllocatesNothing(t *testing.T) {
	g := &nobody{}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p := leaf.NewPermit(g, 1)
		settle(&p, leaf.Returned)
	}))
}

type nobody struct{ _ int }

func (*nobody) Settle(context.Context, uint64, leaf.Outcome) error { return nil }
