package pipelinetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/pipelinetest"
	"github.com/fairlead/fairlead/rejection"
)

// Tests to copy. Each is shorter than 20 lines, which a test checks, and takes a few milliseconds.

var errDown = errors.New("down")

func TestABackoffScheduleIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec pipelinetest.Recorder
		p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{
			MaxAttempts: 4, Backoff: retry.Exponential(100 * time.Millisecond), MaxDelay: 300 * time.Millisecond, Jitter: retry.None,
		})).Observe(rec.Observe).MustBuild()
		bank := pipelinetest.Script[string](t, pipelinetest.Fail(errDown).Times(3), pipelinetest.Return("paid"))
		if receipt, err := pipeline.Do(t.Context(), p, bank.Do); err != nil || receipt != "paid" {
			t.Fatal(receipt, err)
		}
		pipelinetest.AssertSchedule(t, &rec, 0, 100*time.Millisecond, 300*time.Millisecond, 600*time.Millisecond)
	})
}

func TestABreakerOpensAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		circuit := breaker.MustNew(breaker.Config{Consecutive: 3, OpenFor: 30 * time.Second})
		p := pipeline.For("billing").Breaker(circuit).MustBuild()
		bank := pipelinetest.Script[string](t, pipelinetest.Fail(errDown).Times(3), pipelinetest.Return("paid"))
		for range 3 {
			_, _ = pipeline.Do(t.Context(), p, bank.Do)
		}
		_, err := pipeline.Do(t.Context(), p, bank.Do)
		if wait, _ := rejection.RetryAfter(err); !errors.Is(err, breaker.ErrOpen) || wait != 30*time.Second || bank.Runs() != 3 {
			t.Fatal(err, wait, bank.Runs())
		}
		<-time.After(30 * time.Second)
		if receipt, err := pipeline.Do(t.Context(), p, bank.Do); receipt != "paid" || circuit.State() != breaker.Closed {
			t.Fatal(receipt, err, circuit.State())
		}
	})
}

func TestADeadlineCutsARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec pipelinetest.Recorder
		p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{
			MaxAttempts: 10, Backoff: retry.Constant(4 * time.Second), Jitter: retry.None,
		})).Observe(rec.Observe).MustBuild()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err := p.Run(ctx, pipelinetest.Script[any](t, pipelinetest.Fail(errDown).Times(2)).Run)
		if !errors.Is(err, errDown) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 4*time.Second {
			t.Fatal(err, time.Since(began)) // the third attempt would begin at 8 s: nobody sleeps for it
		}
		pipelinetest.AssertSchedule(t, &rec, 0, 4*time.Second)
	})
}

// errBusy is a failure that names a wait, as a 503 with Retry-After does.
type errBusy struct{ wait time.Duration }

func (e errBusy) Error() string                     { return "busy" }
func (e errBusy) RetryAfter() (time.Duration, bool) { return e.wait, true }

func TestARetryAfterThatIsTooLongIsDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{MaxRetryAfter: time.Minute})).MustBuild()
		bank := pipelinetest.Script[string](t, pipelinetest.Fail(errBusy{time.Hour}))
		began := time.Now()
		_, report, err := pipeline.DoDetailed(t.Context(), p, bank.Do)
		wait, _ := rejection.RetryAfter(err)
		if report.Disposition != pipeline.Deferred || wait != time.Hour || rejection.Is(err) || time.Since(began) != 0 {
			t.Fatal(report.Disposition, wait, err, time.Since(began))
		}
	})
}

func TestARetryAfterIsALowerBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec pipelinetest.Recorder
		p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{Jitter: retry.None})).Observe(rec.Observe).MustBuild()
		bank := pipelinetest.Script[string](t, pipelinetest.Fail(errBusy{7 * time.Second}), pipelinetest.Return("paid"))
		if _, err := pipeline.Do(t.Context(), p, bank.Do); err != nil {
			t.Fatal(err)
		}
		pipelinetest.AssertSchedule(t, &rec, 0, 7*time.Second)
	})
}

func TestARateLimitRefusesAndSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("billing").RateLimit(ratelimit.MustNew(ratelimit.Config{Rate: 10, Per: time.Second, Burst: 2})).MustBuild()
		bank := pipelinetest.Script[string](t, pipelinetest.Return("paid").Times(3))
		for range 2 {
			_, _ = pipeline.Do(t.Context(), p, bank.Do)
		}
		_, err := pipeline.Do(t.Context(), p, bank.Do)
		if wait, _ := rejection.RetryAfter(err); !rejection.Is(err) || wait != 100*time.Millisecond || bank.Runs() != 2 {
			t.Fatal(err, wait, bank.Runs())
		}
		<-time.After(100 * time.Millisecond)
		if _, err := pipeline.Do(t.Context(), p, bank.Do); err != nil {
			t.Fatal(err)
		}
	})
}

func TestABulkheadThatIsFullRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		p := pipeline.For("db").Bulkhead(db).MustBuild()
		query := pipelinetest.Script[any](t, pipelinetest.Return(1).After(time.Second))
		go func() { _ = p.Run(t.Context(), query.Run) }()
		synctest.Wait() // the first call holds the slot
		if err := p.Run(t.Context(), query.Run); !errors.Is(err, bulkhead.ErrFull) {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if db.InUse() != 0 || query.Runs() != 1 {
			t.Fatal(db.InUse(), query.Runs())
		}
	})
}

func TestAnHourOfBackoffTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec pipelinetest.Recorder
		p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{
			MaxAttempts: 13, Backoff: retry.Constant(5 * time.Minute), MaxDelay: time.Hour, Jitter: retry.None,
		})).Observe(rec.Observe).MustBuild()
		bank := pipelinetest.Script[string](t, pipelinetest.Fail(errDown).Times(12), pipelinetest.Return("paid"))
		if _, err := pipeline.Do(t.Context(), p, bank.Do); err != nil {
			t.Fatal(err)
		}
		attempts := rec.Events(pipeline.AttemptFinished)
		if last := attempts[len(attempts)-1]; last.Time.Sub(attempts[0].Time) != time.Hour {
			t.Fatal(&rec)
		}
	})
}
