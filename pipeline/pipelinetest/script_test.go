package pipelinetest_test

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/pipelinetest"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

func TestStepsAreTakenInOrderOnePerRun(t *testing.T) {
	other := errors.New("other")
	s := pipelinetest.Script[string](t, pipelinetest.Fail(errDown).Times(2), pipelinetest.Return("a"), pipelinetest.Step{}, pipelinetest.Fail(other))
	for i, want := range []struct {
		v   string
		err error
	}{{"", errDown}, {"", errDown}, {"a", nil}, {"", nil}, {"", other}} {
		require.Equal(t, i, s.Runs())
		v, err := s.Do(t.Context())
		require.Equal(t, want.v, v, i)
		require.Equal(t, want.err, err, i)
	}
}

func TestARunAfterTheLastStepFailsTheTestAndIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &spyTB{}
		s := pipelinetest.Script[string](tb, pipelinetest.Fail(errDown))
		p := pipeline.For("p").Retry(retry.MustNew(retry.Config{MaxAttempts: 50})).MustBuild()
		_, err := pipeline.Do(t.Context(), p, s.Do)
		require.ErrorContains(t, err, "run 2 of a script for 1")
		require.Equal(t, "pipelinetest: run 2 of a script for 1", tb.text())
		require.False(t, tb.fatal, "a callback may run on any goroutine")
		require.Equal(t, 2, s.Runs())
	})
}

func TestAScriptThatCannotBePlayedEndsTheTestAtOnce(t *testing.T) {
	for want, f := range map[string]func(testing.TB){
		"step 2 of the script is Return(7): want a value of type string, not int": func(tb testing.TB) {
			pipelinetest.Script[string](tb, pipelinetest.Return("a"), pipelinetest.Return(7))
		},
		"step 1 of the script is Fail(down).Times(0): want at least 1 time": func(tb testing.TB) {
			pipelinetest.Script[string](tb, pipelinetest.Fail(errDown).Times(0))
		},
		"step 1 of the script is Return(1).Times(-1): want at least 1 time": func(tb testing.TB) {
			pipelinetest.Script[int](tb, pipelinetest.Return(1).Times(-1))
		},
		"step 1 of the script is Block().After(-1s): want a time of 0 or more": func(tb testing.TB) {
			pipelinetest.Script[string](tb, pipelinetest.Block().After(-time.Second))
		},
		"step 1 of the script is Panic(x).Late(-1ns).Times(2): want a time of 0 or more": func(tb testing.TB) {
			pipelinetest.Script[string](tb, pipelinetest.Panic("x").Late(-1).Times(2))
		},
	} {
		tb := &spyTB{}
		tb.run(func() { f(tb) })
		require.Equal(t, "pipelinetest: "+want, tb.text())
		require.True(t, tb.fatal, want)
	}
}

func TestAnInterfaceIsAScriptsTypeToo(t *testing.T) {
	text := strings.NewReader("text")
	s := pipelinetest.Script[io.Reader](t, pipelinetest.Return(text), pipelinetest.Return[io.Reader](nil))
	v, err := s.Do(t.Context())
	require.NoError(t, err)
	require.Same(t, text, v)
	v, err = s.Do(t.Context())
	require.NoError(t, err)
	require.Nil(t, v)
}

func TestBlockHangsUntilItsContextEndsAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shutdown := errors.New("shutdown")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(shutdown) })
		began := time.Now()
		_, err := pipelinetest.Script[int](t, pipelinetest.Block()).Do(ctx)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, shutdown)
	})
}

func TestAfterObeysItsContextAndLateDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			step pipelinetest.Step
			took time.Duration
			err  error
		}{
			{pipelinetest.Return("x").After(time.Second), time.Second, nil},
			{pipelinetest.Return("x").After(time.Minute), 2 * time.Second, context.DeadlineExceeded},
			{pipelinetest.Return("x").Late(time.Minute), time.Minute, nil},
			{pipelinetest.Return("x").Late(time.Minute).After(time.Second), time.Second, nil},
			{pipelinetest.Fail(errDown).Late(time.Minute), time.Minute, errDown},
			{pipelinetest.Block().Late(time.Minute), time.Minute, context.DeadlineExceeded},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			began := time.Now()
			v, err := pipelinetest.Script[string](t, c.step).Do(ctx)
			require.Equal(t, c.took, time.Since(began), c.step)
			require.ErrorIs(t, err, c.err, c.step)
			require.Equal(t, err == nil, v == "x", c.step)
			cancel()
		}
	})
}

func TestPanicPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		var rec pipelinetest.Recorder
		p := pipeline.For("p").Bulkhead(slots).Observe(rec.Observe).MustBuild()
		s := pipelinetest.Script[any](t, pipelinetest.Panic("boom").After(time.Second))
		require.PanicsWithValue(t, "boom", func() { _ = p.Run(t.Context(), s.Run) })
		require.Zero(t, slots.InUse())
		pipelinetest.AssertSchedule(t, &rec, 0)
	})
}

func TestWaitsAreOnTheScriptsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clockwork.NewFakeClock()
		s := pipelinetest.Script[int](t, pipelinetest.Return(1).After(time.Hour), pipelinetest.Return(2).Late(time.Hour)).On(clock)
		var got []int
		go func() {
			for range 2 {
				v, _ := s.Do(t.Context())
				got = append(got, v)
			}
		}()
		for _, want := range [][]int{nil, {1}} {
			<-time.After(24 * time.Hour) // the bubble's time does not count
			synctest.Wait()
			require.Equal(t, want, got)
			clock.Advance(time.Hour)
		}
		synctest.Wait()
		require.Equal(t, []int{1, 2}, got)
	})
}

func TestALateStepOutlivesADetachedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec pipelinetest.Recorder
		p := pipeline.For("p").AttemptTimeout(timeout.MustNew(timeout.Config{Limit: time.Second})).Observe(rec.Observe).MustBuild()
		s := pipelinetest.Script[string](t, pipelinetest.Return("late").Late(time.Minute))
		var late string
		_, err := pipeline.DoDetached(t.Context(), p, s.Do, pipeline.Detached[string]{Late: func(v string, _ error) { late = v }})
		require.ErrorIs(t, err, timeout.ErrTimeout)
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, "late", late)
		pipelinetest.AssertSchedule(t, &rec, 0)
	})
}

func TestAScriptMayRunOnManyGoroutines(t *testing.T) {
	const n = 100
	s := pipelinetest.Script[int](t, pipelinetest.Return(1).Times(n))
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if v, err := s.Do(t.Context()); v != 1 || err != nil {
				t.Error(v, err)
			}
		})
	}
	all.Wait()
	require.Equal(t, n, s.Runs())
}

func TestAllocTimesCountsDownInsteadOfCopyingTheStep(t *testing.T) {
	of := func(times int) float64 {
		step := pipelinetest.Fail(errDown).Times(times)
		return testing.AllocsPerRun(10, func() { pipelinetest.Script[int](t, step) })
	}
	require.Equal(t, of(1), of(1<<16))
}

func TestTimesMaxIntIsForEver(t *testing.T) {
	s := pipelinetest.Script[int](t, pipelinetest.Return(1), pipelinetest.Fail(errDown).Times(math.MaxInt), pipelinetest.Return(2))
	v, err := s.Do(t.Context())
	require.Equal(t, 1, v)
	require.NoError(t, err)
	for range 10_000 {
		_, err := s.Do(t.Context())
		require.Equal(t, errDown, err)
	}
	require.Equal(t, 10_001, s.Runs())
}

func TestStepsThatAScriptTookAreTheCallersStill(t *testing.T) {
	steps := []pipelinetest.Step{pipelinetest.Fail(errDown).Times(2), pipelinetest.Return(1)}
	for range 2 {
		s := pipelinetest.Script[int](t, steps...)
		for _, want := range []int{0, 0, 1} {
			v, _ := s.Do(t.Context())
			require.Equal(t, want, v)
		}
	}
}
