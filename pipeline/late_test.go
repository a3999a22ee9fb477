package pipeline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/stretchr/testify/require"
)

// whose is what ends an attempt that ignores its context.
type whose struct {
	verdict  leaf.Verdict
	at       time.Duration // when
	given    time.Duration
	attempt  time.Duration
	total    time.Duration
	deadline time.Duration
	cancel   time.Duration
}

// run is a detached call of fn, cut as w says, through three guards of which the outermost and the innermost occupy a slot. It
// returns when everything has settled.
func (w whose) run(t *testing.T, fn func(context.Context) (int, error), told pipeline.Detached[int]) (outer, middle, inner *rule, log []string) {
	var j journal
	first, last := &occupied{rule{name: "outer", log: &j}}, &occupied{rule{name: "inner", log: &j}}
	between := &rule{name: "middle", log: &j}
	b := pipeline.For("p").With(first, between).Bulkhead(last)
	if w.attempt > 0 {
		b = b.AttemptTimeout(limitOf(w.attempt))
	}
	if w.total > 0 {
		b = b.Timeout(limitOf(w.total))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if w.deadline > 0 {
		with, stop := context.WithTimeout(ctx, w.deadline)
		defer stop()
		ctx = with
	}
	if w.cancel > 0 {
		time.AfterFunc(w.cancel, cancel)
	}
	began := time.Now()
	_, err := pipeline.DoDetached(ctx, b.MustBuild(), func(ctx context.Context) (int, error) {
		defer func() { <-time.After(time.Until(began.Add(time.Second))) }()
		return fn(ctx)
	}, told)
	require.Error(t, err)
	require.Equal(t, w.at, time.Since(began), "the call ends in time")
	require.Equal(t, []leaf.Verdict{w.verdict}, between.verdicts(), "who holds nothing is told at once")
	require.Empty(t, first.verdicts())
	require.Empty(t, last.verdicts())
	<-time.After(time.Until(began.Add(time.Second)))
	synctest.Wait()
	return &first.rule, between, &last.rule, j.lines
}

var everybody = map[string]whose{
	"attempt timeout":    {verdict: leaf.TimedOut, at: 100 * time.Millisecond, given: 10 * time.Second, attempt: 100 * time.Millisecond, deadline: 10 * time.Second},
	"without a deadline": {verdict: leaf.TimedOut, at: 100 * time.Millisecond, attempt: 100 * time.Millisecond},
	"total timeout":      {verdict: leaf.CallerExpired, at: 200 * time.Millisecond, given: 200 * time.Millisecond, total: 200 * time.Millisecond},
	"the caller's":       {verdict: leaf.CallerExpired, at: 300 * time.Millisecond, given: 300 * time.Millisecond, deadline: 300 * time.Millisecond, total: time.Hour},
	"caller went away":   {verdict: leaf.CallerCancelled, at: 400 * time.Millisecond, given: 10 * time.Second, cancel: 400 * time.Millisecond, deadline: 10 * time.Second},
}

// Section 3, DoDetached: a late slot is told, when fn really ends, how it ended, what time the call had, and how long fn took.
func TestALateSlotIsToldWhatReallyHappened(t *testing.T) {
	judged := &later{}
	for cut, w := range everybody {
		for name, test := range map[string]struct {
			fn   func(context.Context) (int, error)
			want leaf.Outcome
		}{
			"returned":  {func(context.Context) (int, error) { return 1, nil }, leaf.Outcome{Verdict: leaf.Returned}},
			"failed":    {func(context.Context) (int, error) { return 0, errDown }, leaf.Outcome{Verdict: w.verdict, Err: errDown}},
			"judged":    {func(context.Context) (int, error) { return 0, judged }, leaf.Outcome{Verdict: leaf.Ignored, Err: judged}},
			"a refusal": {func(context.Context) (int, error) { return 0, &no{} }, leaf.Outcome{Verdict: leaf.Ignored, Err: &no{}}},
			"panicked":  {func(context.Context) (int, error) { panic("late") }, leaf.Outcome{Verdict: leaf.Panicked}},
		} {
			t.Run(cut+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					outer, middle, inner, log := w.run(t, test.fn, pipeline.Detached[int]{LatePanic: func(v any) { require.Equal(t, "late", v) }})
					want := test.want
					want.Given, want.Took = w.given, time.Second
					require.Equal(t, []leaf.Outcome{want}, outer.told)
					require.Equal(t, []leaf.Outcome{want}, inner.told)
					require.Equal(t, w.given, middle.told[0].Given)
					require.Equal(t, w.at, middle.told[0].Took, "until it was given up on")
					require.Equal(t, []string{
						"acquire outer", "acquire middle", "acquire inner", "settle middle " + w.verdict.String(),
						"settle inner " + want.Verdict.String(), "settle outer " + want.Verdict.String(), // innermost first
					}, log)
				})
			})
		}
	}
}

// The same for a refusal that came out of fn as a nested pipeline's RanError: the late slot hears what the others would have.
func TestALateRanErrorIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := &pipeline.RanError{Err: &no{}}
		outer, _, inner, _ := everybody["attempt timeout"].run(t, func(context.Context) (int, error) { return 0, ran }, pipeline.Detached[int]{})
		require.Equal(t, []leaf.Verdict{leaf.Ignored}, outer.verdicts())
		require.Equal(t, []leaf.Verdict{leaf.Ignored}, inner.verdicts())
	})
}

// Section 1: a panic inside a Settle never replaces fn's, late neither, and keeps no other slot (F10).
func TestALatePanicIsFnsOwnThoughASettlePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, inner := &occupied{}, &occupied{}
		inner.settle = func(leaf.Outcome) error { panic("settle's") }
		p := pipeline.For("p").With(outer).Bulkhead(inner).AttemptTimeout(limitOf(time.Millisecond)).MustBuild()
		for _, ends := range []struct {
			fn   func(context.Context) (int, error)
			want any
		}{
			{func(context.Context) (int, error) { <-time.After(time.Second); panic("fn's") }, "fn's"},
			{func(context.Context) (int, error) { <-time.After(time.Second); return 0, nil }, "settle's"},
		} {
			told := make(chan any, 2)
			_, err := pipeline.DoDetached(t.Context(), p, ends.fn, pipeline.Detached[int]{
				LatePanic: func(v any) { told <- v }, Late: func(int, error) { told <- "both" },
			})
			require.Error(t, err)
			require.Equal(t, ends.want, <-told)
			synctest.Wait()
			require.Empty(t, told)
		}
		require.Len(t, outer.verdicts(), 2)
		require.Len(t, inner.verdicts(), 2)
	})
}

// moody is a guard whose Occupies panics.
type moody struct{ rule }

func (*moody) Occupies() bool { panic("occupies") }

// Exactly once per admission, also where a guard panics while the call gives fn up: all are the call's own then, and fn's none.
func TestAGuardThatPanicsWhenFnIsGivenUpSettlesNoneTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slot, bad, late := &occupied{}, &moody{}, 0
		p := pipeline.For("p").With(slot, bad).AttemptTimeout(limitOf(time.Millisecond)).MustBuild()
		require.PanicsWithValue(t, "occupies", func() {
			_, _ = pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) {
				<-time.After(time.Second)
				return 1, nil
			}, pipeline.Detached[int]{Late: func(int, error) { late++ }})
		})
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(t, []leaf.Verdict{leaf.Panicked}, slot.verdicts())
		require.Equal(t, []leaf.Verdict{leaf.Panicked}, bad.verdicts())
		require.Equal(t, 1, late)
	})
}

// silent is a context that is done and has no Err, which no context may be.
type silent struct{ context.Context }

func (silent) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// A call that gave fn up has no result, and so no success.
func TestACallThatGaveUpIsNoSuccessWhateverItsContextSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan int, 1)
		_, err := pipeline.DoDetached(silent{t.Context()}, pipeline.For("p").MustBuild(), func(context.Context) (int, error) {
			<-time.After(time.Second)
			return 7, nil
		}, pipeline.Detached[int]{Late: func(v int, _ error) { told <- v }})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 7, <-told)
	})
}
