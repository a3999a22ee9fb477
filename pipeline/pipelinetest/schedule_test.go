package pipelinetest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/pipelinetest"
	"github.com/stretchr/testify/require"
)

// threeRuns is a call with attempts at 0, 100 ms and 300 ms.
func threeRuns(t *testing.T) *pipelinetest.Recorder {
	var rec pipelinetest.Recorder
	p := pipeline.For("p").Retry(retry.MustNew(retry.Config{Jitter: retry.None})).Observe(rec.Observe).MustBuild()
	_ = p.Run(t.Context(), pipelinetest.Script[any](t, pipelinetest.Fail(errDown).Times(3)).Run, pipeline.OperationID("op-1"))
	return &rec
}

func TestASchedulesDifferenceIsReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := time.Millisecond
		for name, c := range map[string]struct {
			want []time.Duration
			told string
		}{
			"the same": {want: []time.Duration{0, 100 * ms, 300 * ms}},
			"late and early": {want: []time.Duration{0, 50 * ms, 350 * ms}, told: `
  attempt  want                       got
  1        0s                         0s
  2        50ms (+50ms)               100ms (+100ms)             <- 50ms late
  3        350ms (+300ms)             300ms (+200ms)             <- 50ms early
`},
			"unexpected": {want: []time.Duration{0, 100 * ms}, told: `
  3        -                          300ms (+200ms)             <- unexpected
`},
			"missing": {want: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}, told: `
  4        700ms (+400ms)             -                          <- missing
`},
			"none": {told: `
  1        -                          0s                         <- unexpected
`},
		} {
			tb := &spyTB{}
			pipelinetest.AssertSchedule(tb, threeRuns(t), c.want...)
			require.Equal(t, c.told != "", len(tb.told) == 1, name)
			require.Contains(t, tb.text(), c.told, name)
			require.False(t, tb.fatal, name)
			if c.told != "" { // what happened stands below
				require.Contains(t, tb.text(), "\n100ms        retry_scheduled pipeline=p operation=op-1 attempt=3 delay=200ms\n", name)
			}
		}
	})
}

func TestWhatAGuardRefusedIsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec pipelinetest.Recorder
		slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		p := pipeline.For("p").Bulkhead(slots).Observe(rec.Observe).MustBuild()
		s := pipelinetest.Script[any](t, pipelinetest.Return(1).After(time.Second).Times(2))
		go func() { _ = p.Run(t.Context(), s.Run) }()
		synctest.Wait()
		require.ErrorIs(t, p.Run(t.Context(), s.Run), bulkhead.ErrFull)
		<-time.After(2 * time.Second)
		require.NoError(t, p.Run(t.Context(), s.Run))
		pipelinetest.AssertSchedule(t, &rec, 0, 2*time.Second)
		require.Len(t, rec.Events(pipeline.GuardRejected), 1)
	})
}

func TestAScheduleIsInTheOrderOfBeginnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec pipelinetest.Recorder
		p := pipeline.For("p").Observe(rec.Observe).MustBuild()
		var all sync.WaitGroup
		for _, took := range []time.Duration{5 * time.Second, time.Second} { // the first to begin is the last to end
			all.Go(func() { _ = p.Run(t.Context(), pipelinetest.Script[any](t, pipelinetest.Return(1).After(took)).Run) })
			<-time.After(time.Second)
		}
		all.Wait()
		pipelinetest.AssertSchedule(t, &rec, 0, time.Second)
	})
}

func TestARecorderKeepsEventsInOrderAndGivesCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := threeRuns(t)
		var kinds []string
		for _, e := range rec.Events() {
			kinds = append(kinds, e.Kind.String())
		}
		require.Equal(t, "call_started attempt_finished retry_scheduled attempt_finished retry_scheduled attempt_finished retry_stopped call_finished",
			strings.Join(kinds, " "))
		rec.Events()[0].Pipeline = "changed"
		require.Equal(t, "p", rec.Events()[0].Pipeline)
		require.Len(t, rec.Events(pipeline.CallStarted, pipeline.RetryScheduled), 3)
		rec.Reset()
		require.Empty(t, rec.Events())
		require.Empty(t, rec.String())
		pipelinetest.AssertSchedule(t, rec)
	})
}

func TestARecorderIsSafeForConcurrentUse(t *testing.T) {
	var rec pipelinetest.Recorder
	p := pipeline.For("p").Observe(rec.Observe).MustBuild()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_ = p.Run(t.Context(), func(context.Context) error { return nil })
			_ = rec.String()
		})
	}
	all.Wait()
	require.Len(t, rec.Events(), 150)
}
