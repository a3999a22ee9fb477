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
	Kind      Kind      // what has happened: look at it first, it says which of the fields below mean anything
	Time      time.Time // when, on the pipeline's clock; a step of the real wall clock shows in it within a second
	Pipeline  string    // its name
	Operation string    // the call's OperationID; "" = none
	Layer     string    // rejected: who refused, as in [Layer].Kind; call_finished: as in [Report]; "" = nobody

	// Attempt counts runs of fn, from 1. attempt_finished: the run that ended. retry_scheduled: the run that it waits for.
	// rejected: the run that was refused, and did not begin. retry_stopped and call_finished: the runs that there were; 0 = none.
	Attempt int

	// Delay is how long the retry now waits, jitter included. retry_scheduled alone; 0 = the retry follows at once.
	Delay time.Duration

	// Wait is what the other side, or a guard, asked to be left alone for: retry_scheduled (Delay is no shorter), retry_stopped,
	// rejected, call_finished; 0 = nobody asked. It may be longer than anything that is waited.
	Wait time.Duration

	// Reason is why the retry stopped. retry_stopped, and call_finished after it; 0 = no retry, or nothing stopped it.
	Reason retry.Reason

	// Took is a duration on the pipeline's clock, never negative. attempt_finished: inside fn. call_finished: the whole call up to
	// its result, waits and observers included, a fallback not; of a success after which no guard's Settle may take time, up to
	// fn's return, with which it is certain.
	Took time.Duration

	// Err is a failure. attempt_finished: fn's, as the retry sees it (a limit of the pipeline that cut it is a *timeout.Error);
	// rejected: the guard's own, before OnRejected; call_finished: what the caller gets, before a fallback. nil = a success.
	// Where fn did not return, of both: [ErrPanicked].
	Err error

	// Disposition is how the call ended: call_finished alone. Every other kind has the zero value, which reads as Succeeded and
	// says nothing. A call_finished sums the call up, so that an observer need not remember it: its Attempt, Reason, Layer and
	// Wait are those of [Report].
	Disposition Disposition
}
