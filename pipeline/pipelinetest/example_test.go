package pipelinetest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/pipelinetest"
	"github.com/jonboulle/clockwork"
)

// What a pipeline did, event by event. The tests to copy are in recipes_test.go.
func ExampleRecorder() {
	var rec pipelinetest.Recorder
	p := pipeline.For("billing").Retry(retry.MustNew(retry.Config{
		MaxAttempts: 2, Backoff: retry.Immediate, Clock: clockwork.NewFakeClock(),
	})).Observe(rec.Observe).MustBuild()
	_ = p.Run(context.Background(), func(context.Context) error { return errors.New("down") })
	fmt.Print(&rec)
	// Output:
	// 0s           call_started pipeline=billing
	// 0s           attempt_finished pipeline=billing attempt=1 err="down"
	// 0s           retry_scheduled pipeline=billing attempt=2
	// 0s           attempt_finished pipeline=billing attempt=2 err="down"
	// 0s           retry_stopped pipeline=billing attempt=2 reason=attempts_exhausted
	// 0s           call_finished pipeline=billing attempt=2 reason=attempts_exhausted err="retry: attempts_exhausted after 2 attempts: last failure: down"
}
