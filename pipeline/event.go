package pipeline

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
)

// Kind of an [Event].
type Kind uint8

const (
	_               Kind = iota
	CallStarted          // call_started
	CallFinished         // call_finished: Err is the call's result, Took all of it, and how it went; the only kind that can be an error to a log
	AttemptFinished      // attempt_finished: Attempt, Took, Err
	RetryScheduled       // retry_scheduled: Attempt is the next one, Delay; Wait where it was asked for
	RetryStopped         // retry_stopped: Attempt is the runs of fn so far, Reason; Wait where it was asked for
	GuardRejected        // rejected: Layer, Attempt is the one that was refused, Err; Wait where the refusal names one
)

// String is the name in snake case.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

var kinds = [...]string{
	CallStarted: "call_started", CallFinished: "call_finished", AttemptFinished: "attempt_finished",
	RetryScheduled: "retry_scheduled", RetryStopped: "retry_stopped", GuardRejected: "rejected",
}

// Event is what Observe is told. A guard may serve many pipelines, so its state changes, would-be refusals and store
// trouble are told to its own hooks instead. Fields that do not apply to its Kind are zero. It never holds a callback's result.
//
// A failure that is never retried by its kind (retry.Permanent, StopIf, RetryIf, somebody's refusal) stops nothing: its
// attempt_finished is followed by call_finished.
type Event struct {
	Kind      Kind
	Time      time.Time // on the pipeline's clock
	Pipeline  string
	Operation string // OperationID
	Layer     string // as in [Layer].Kind
	Attempt   int    // from 1; 0 = none
	Delay     time.Duration
	Wait      time.Duration
	Reason    retry.Reason
	Took      time.Duration
	Err       error
	// Disposition is how the call ended. A call_finished sums the call up, so that an observer need not remember it: Attempt is
	// the runs of fn, Reason why the retry stopped, Layer the one that refused last, Wait what was asked for: all as in [Report].
	Disposition Disposition
}
