package leaf_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// one is a guard of one place, that can do everything.
type one struct {
	tally
	taken     bool
	hints     []time.Duration
	afterTry  func()
	refuseErr error
}

func (g *one) Acquire(context.Context) (leaf.Permit, error) { panic("a shadow never waits") }

func (g *one) TryAcquire(ctx context.Context) (leaf.Permit, error) {
	if g.afterTry != nil {
		defer g.afterTry()
	}
	if g.taken {
		return leaf.Permit{}, g.refuseErr
	}
	g.taken = true
	return g.tally.Acquire(ctx)
}

func (g *one) Peek(context.Context) error                 { return refusal{} }
func (g *one) Hint(_ context.Context, wait time.Duration) { g.hints = append(g.hints, wait) }
func (g *one) Lease() time.Duration                       { return time.Hour }
func (g *one) Occupies() bool                             { return true }
func (g *one) WantsTook() bool                            { return true }
func (g *one) Inspect() leaf.Snapshot                     { return leaf.Snapshot{Kind: "one", State: "full"} }

// report keeps what a Shadow tells.
type report struct {
	ctxs []context.Context
	errs []error
}

func (r *report) hook(ctx context.Context, err error) {
	r.ctxs, r.errs = append(r.ctxs, ctx), append(r.errs, err)
}

func TestShadowDecidesCountsAndRefusesNobody(t *testing.T) {
	inner := &one{refuseErr: refusal{wait: 3}}
	var r report
	g := leaf.Shadow(inner, r.hook)
	ctx := context.WithValue(t.Context(), ctxKey{}, 1)

	var first, second leaf.Permit
	require.NoError(t, acquireInto(&first, g, ctx))
	require.Empty(t, r.errs, "admitted: nothing to tell")
	require.NoError(t, acquireInto(&second, g, ctx), "refused, and admitted all the same")
	require.Equal(t, []error{refusal{wait: 3}}, r.errs)
	require.Equal(t, []context.Context{ctx}, r.ctxs)

	require.True(t, second == leaf.Permit{}, "a call that g refused settles nothing in g")
	settle(&second, leaf.Returned)
	require.Equal(t, 1, inner.inside)
	inner.settle = func(leaf.Outcome) error { return errWork }
	require.Equal(t, errWork, first.Settle(ctx, leaf.Outcome{Verdict: leaf.TimedOut}), "settled as usual")
	require.Equal(t, leaf.TimedOut, inner.only(t).Verdict)
}

// What would have kept the call from running is told and passed by, whatever it is.
func TestShadowPassesEveryError(t *testing.T) {
	for _, err := range []error{errWork, context.DeadlineExceeded, &leaf.StoreError{Op: leaf.OpAdmit, Err: errWork}} {
		var r report
		v, got := leaf.Do(t.Context(), leaf.Shadow(&one{taken: true, refuseErr: err}, r.hook), succeed)
		require.NoError(t, got)
		require.Equal(t, 1, v)
		require.Equal(t, []error{err}, r.errs)
	}
}

func TestShadowReportMayBeNil(t *testing.T) {
	require.NoError(t, acquireInto(new(leaf.Permit), leaf.Shadow(&one{taken: true, refuseErr: errWork}, nil), t.Context()))
}

func TestShadowDoneContextIsCtxsError(t *testing.T) {
	inner := &one{refuseErr: refusal{}}
	var r report
	g := leaf.Shadow(inner, r.hook)
	for _, acquire := range []func(context.Context) (leaf.Permit, error){g.Acquire, g.(leaf.Trier).TryAcquire} {
		_, err := acquire(done(errCause))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errCause)
	}
	require.Zero(t, inner.asked)

	// It may also end while g is asked: then a refusal says nothing any more.
	ctx, cancel := context.WithCancelCause(t.Context())
	inner.taken, inner.afterTry = true, func() { cancel(errCause) }
	var p leaf.Permit
	err := acquireInto(&p, g, ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errCause)
	require.True(t, p == leaf.Permit{})
	require.Empty(t, r.errs)

	// An admission that came in time stays one; Do gives it back.
	inner.taken = false
	again, cancelAgain := context.WithCancelCause(t.Context())
	inner.afterTry = func() { cancelAgain(errCause) }
	_, err = leaf.Do(again, g, succeed)
	require.ErrorIs(t, err, errCause)
	require.Equal(t, leaf.NotRun, inner.only(t).Verdict)
}

// A shadow never waits, though its guard would.
func TestShadowNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := leaf.Shadow(&one{taken: true, refuseErr: refusal{}}, nil) // its Acquire panics
		require.NoError(t, acquireInto(new(leaf.Permit), g, t.Context()))
		p, err := g.(leaf.Trier).TryAcquire(t.Context())
		require.NoError(t, err)
		settle(&p, leaf.Returned)
		require.Equal(t, began, time.Now())
	})
}

func TestShadowPanicsHoldNothing(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			inner := &one{taken: true, refuseErr: refusal{}}
			g := leaf.Shadow(inner, func(context.Context, error) { end() })
			wantUnwound(t, how, func() { _ = acquireInto(new(leaf.Permit), g, t.Context()) })
			require.Zero(t, inner.inside)
		})
	}
}

func TestShadowLetsItsGuardSeeEverything(t *testing.T) {
	inner := &one{}
	g := leaf.Shadow(inner, nil)
	g.(leaf.Hinter).Hint(t.Context(), 5)
	require.Equal(t, []time.Duration{5}, inner.hints)
	require.Equal(t, time.Hour, g.(leaf.Leaser).Lease())
	require.True(t, g.(leaf.Occupier).Occupies())
	require.True(t, g.(leaf.Timed).WantsTook())
	require.Equal(t, leaf.Snapshot{Kind: "one", State: "full"}, g.(leaf.Inspector).Inspect())
	_, peeks := g.(leaf.Peeker)
	require.False(t, peeks, "what refuses nobody has nothing to warn of")
}

func TestShadowOfAPlainGuardIsNeutral(t *testing.T) {
	g := leaf.Shadow(&triable{}, nil)
	g.(leaf.Hinter).Hint(t.Context(), 5)
	require.Zero(t, g.(leaf.Leaser).Lease())
	require.False(t, g.(leaf.Occupier).Occupies())
	require.False(t, g.(leaf.Timed).WantsTook())
	_, inspects := g.(leaf.Inspector)
	require.False(t, inspects)
}

func TestShadowOfNilIsAnErrorOfEveryAcquire(t *testing.T) {
	for name, g := range map[string]leaf.Guard{"nil": leaf.Shadow(nil, nil), "typed nil": leaf.Shadow((*one)(nil), nil)} {
		for range 2 {
			require.EqualError(t, acquireInto(new(leaf.Permit), g, t.Context()), "leaf: Shadow's g is nil: want a guard", name)
		}
		g.(leaf.Hinter).Hint(t.Context(), 5)
		require.Zero(t, g.(leaf.Leaser).Lease())
		require.False(t, g.(leaf.Occupier).Occupies())
		require.False(t, g.(leaf.Timed).WantsTook())
	}
}

func TestShadowAllocatesNothing(t *testing.T) {
	full := leaf.Shadow(&refuser{errors.New("full")}, func(context.Context, error) {})
	for name, g := range map[string]leaf.Guard{"admitted": leaf.Shadow(open{}, nil), "refused": full} {
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if v, err := leaf.Do(t.Context(), g, succeed); v != 1 || err != nil {
				panic(err)
			}
		}), name)
	}
}

type refuser struct{ err error }

func (g *refuser) TryAcquire(context.Context) (leaf.Permit, error) { return leaf.Permit{}, g.err }
