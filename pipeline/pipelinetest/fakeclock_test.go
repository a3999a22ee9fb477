package pipelinetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/pipelinetest"
	"github.com/jonboulle/clockwork"
)

// A test to copy, for code that gives its layers a clockwork.FakeClock.
func TestABackoffOnAFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec pipelinetest.Recorder
		clock := clockwork.NewFakeClock()
		p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{
			MaxAttempts: 2, Backoff: retry.Constant(time.Hour), MaxDelay: time.Hour, Jitter: retry.None, Clock: clock,
		})).Observe(rec.Observe).MustBuild()
		bank := pipelinetest.Script[any](t, pipelinetest.Fail(errDown).After(time.Minute), pipelinetest.Return("paid")).On(clock)
		go func() { _ = p.Run(t.Context(), bank.Run) }()
		for _, d := range []time.Duration{time.Minute, time.Hour} {
			synctest.Wait() // until the call can go no further: it sleeps
			clock.Advance(d)
		}
		synctest.Wait()
		pipelinetest.AssertSchedule(t, &rec, 0, time.Hour+time.Minute)
	})
}
