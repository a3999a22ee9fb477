package leaf_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func TestDoRunsBehindTheGuard(t *testing.T) {
	var g tally
	ctx := context.WithValue(t.Context(), ctxKey{}, "caller's")
	v, err := leaf.Do(ctx, &g, func(inner context.Context) (string, error) {
		require.Equal(t, ctx, inner)
		require.Equal(t, 1, g.inside)
		return "result", nil
	})
	require.NoError(t, err)
	require.Equal(t, "result", v)
	require.Equal(t, leaf.Outcome{}, g.only(t))
	require.Equal(t, []context.Context{ctx}, g.ctxs, "Settle gets the caller's own context")
}

func TestDoWithADoneContextAsksNobody(t *testing.T) {
	var g tally
	ran := false
	_, err := leaf.Do(done(errCause), &g, func(context.Context) (int, error) { ran = true; return 0, nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errCause)
	require.Zero(t, g.asked)
	require.Empty(t, g.outcomes)
	require.False(t, ran)
}

func TestDoReturnsARefusalUnchanged(t *testing.T) {
	want := refusal{wait: 5}
	g := tally{acquire: func(context.Context) error { return want }}
	ran := false
	v, err := leaf.Do(t.Context(), &g, func(context.Context) (int, error) { ran = true; return 7, nil })
	require.Equal(t, want, err)
	require.Zero(t, v)
	require.False(t, ran)
	require.Empty(t, g.outcomes, "what was not admitted is not settled")
}

func TestDoContextEndedDuringAcquireIsNotRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	g := tally{acquire: func(context.Context) error { cancel(errCause); return nil }}
	ran := false
	v, err := leaf.Do(ctx, &g, func(context.Context) (int, error) { ran = true; return 7, nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errCause)
	require.Zero(t, v)
	require.False(t, ran)
	o := g.only(t)
	require.Equal(t, leaf.NotRun, o.Verdict)
	require.Equal(t, err, o.Err)
	require.Zero(t, o.Took)
}

func TestDoReturnsTheZeroValueOnAnError(t *testing.T) {
	var g tally
	v, err := leaf.Do(t.Context(), &g, func(context.Context) (string, error) { return "half a result", errWork })
	require.Empty(t, v)
	require.Equal(t, errWork, err, "fn's error comes back unchanged")
	require.Equal(t, leaf.Outcome{Err: errWork}, g.only(t))
}

func TestDoSettleErrorChangesNothing(t *testing.T) {
	g := tally{settle: func(leaf.Outcome) error { return errors.New("nobody cares") }}
	v, err := leaf.Do(t.Context(), &g, succeed)
	require.NoError(t, err)
	require.Equal(t, 1, v)
	_, err = leaf.Do(t.Context(), &g, fail)
	require.Equal(t, errWork, err)
}

func TestDoPanicAndGoexitSettleAndGoOn(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			var g tally
			wantUnwound(t, how, func() {
				_, _ = leaf.Do(t.Context(), &g, func(context.Context) (int, error) { end(); return 0, errWork })
			})
			require.Equal(t, leaf.Outcome{Verdict: leaf.Panicked}, g.only(t), "Err is nil for Panicked")
		})
	}
}

func TestDoSettlePanicNeverReplacesTheCallbacks(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			g := tally{settle: func(leaf.Outcome) error { panic("settle's own") }}
			wantUnwound(t, how, func() {
				_, _ = leaf.Do(t.Context(), &g, func(context.Context) (int, error) { end(); return 0, nil })
			})
			g.only(t)
		})
	}
}

// In the normal path nothing else unwinds: the panic is the Settler's and goes on, but nothing is settled twice.
func TestDoSettlePanicInTheNormalPathGoesOn(t *testing.T) {
	for how, end := range ends {
		for name, fn := range map[string]func(context.Context) (int, error){"success": succeed, "failure": fail} {
			t.Run(how+" after "+name, func(t *testing.T) {
				g := tally{settle: func(leaf.Outcome) error { end(); return nil }}
				wantUnwound(t, how, func() { _, _ = leaf.Do(t.Context(), &g, fn) })
				require.Equal(t, leaf.Returned, g.only(t).Verdict)
			})
		}
		t.Run(how+" after NotRun", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			g := tally{
				acquire: func(context.Context) error { cancel(); return nil },
				settle:  func(leaf.Outcome) error { end(); return nil },
			}
			wantUnwound(t, how, func() { _, _ = leaf.Do(ctx, &g, succeed) })
			require.Equal(t, leaf.NotRun, g.only(t).Verdict)
		})
	}
}

func TestDoAcquirePanicSettlesNothing(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			g := tally{acquire: func(context.Context) error { end(); return nil }}
			wantUnwound(t, how, func() { _, _ = leaf.Do(t.Context(), &g, succeed) })
			require.Empty(t, g.outcomes)
		})
	}
}

// badJudge panics where it should judge.
type badJudge struct{ end func() }

func (badJudge) Error() string                       { return "bad judge" }
func (j badJudge) Judge(o leaf.Outcome) leaf.Outcome { j.end(); return o }

func TestDoPanickingJudgeSettlesAndGoesOn(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			var g tally
			wantUnwound(t, how, func() {
				_, _ = leaf.Do(t.Context(), &g, func(context.Context) (int, error) { return 0, badJudge{end} })
			})
			require.Equal(t, leaf.Panicked, g.only(t).Verdict)
		})
	}
}

// A pipeline or a guard inside fn refused: the outer guard's downstream was not asked. C14
func TestDoNestedRefusalIsIgnored(t *testing.T) {
	var outer tally
	inner := tally{acquire: func(context.Context) error { return refusal{} }}
	_, err := leaf.Do(t.Context(), &outer, func(ctx context.Context) (int, error) {
		return leaf.Do(ctx, &inner, succeed)
	})
	require.Equal(t, refusal{}, err, "the caller sees the inner refusal")
	require.Equal(t, leaf.Outcome{Verdict: leaf.Ignored, Err: refusal{}}, outer.only(t))
}

func TestDoJudgeChangesWhatTheGuardIsToldAlone(t *testing.T) {
	var g tally
	_, err := leaf.Do(t.Context(), &g, func(context.Context) (int, error) { return 0, success{} })
	require.Equal(t, success{}, err)
	require.Equal(t, leaf.Outcome{}, g.only(t))
}

func TestDoZeroPermitIsFine(t *testing.T) {
	v, err := leaf.Do(t.Context(), zeroPermit{}, succeed)
	require.NoError(t, err)
	require.Equal(t, 1, v)
}

type zeroPermit struct{}

func (zeroPermit) Acquire(context.Context) (leaf.Permit, error) { return leaf.Permit{}, nil }

func TestDoAllocatesNothing(t *testing.T) {
	expiring, cancel := context.WithTimeout(t.Context(), 1<<40)
	defer cancel()
	var g timedOpen
	for name, ctx := range map[string]context.Context{"no deadline": t.Context(), "deadline": expiring} {
		sum := 0
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			captured := sum
			v, err := leaf.Do(ctx, g, func(context.Context) (int, error) { return captured + 1, nil })
			if err != nil {
				panic(err)
			}
			sum = v
		}), name)
	}
}

type timedOpen struct{ open }

func (timedOpen) WantsTook() bool { return true }
