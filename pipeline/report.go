package pipeline

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
)

// Disposition is how a call ended.
type Disposition uint8

const (
	Succeeded Disposition = iota // succeeded
	Failed                       // failed: fn ran, and its failure is the result
	Rejected                     // rejected: a guard refused, fn never ran
	Deferred                     // deferred: fn ran, and the other side asked for a wait that was not slept
	Expired                      // expired: the caller's deadline or the total timeout
	Cancelled                    // cancelled: the caller went away
)

// String is the name in lower case.
func (d Disposition) String() string {
	if int(d) < len(dispositions) {
		return dispositions[d]
	}
	return fmt.Sprintf("Disposition(%d)", uint8(d))
}

var dispositions = [...]string{
	Succeeded: "succeeded", Failed: "failed", Rejected: "rejected", Deferred: "deferred", Expired: "expired",
	Cancelled: "cancelled",
}

// Report is what DoDetailed tells. Durations are on the pipeline's clock, never negative. It is the caller's own to keep.
type Report struct {
	Disposition Disposition   // how the call ended
	Attempts    int           // runs of fn; 0 = it never ran
	Reason      retry.Reason  // why the retry loop stopped; 0 = it did not, or there is none
	Layer       string        // that refused last, where the call failed and fn did not run after it, as in [Layer].Kind; "" = none
	Wait        time.Duration // the wait that the other side, or a guard, asked for, however long; 0 = none
	Last        error         // fn's last failure; nil = none
	Elapsed     time.Duration // the whole call, as Took of its call_finished
	Waited      time.Duration // of it in backoffs and in guards' Acquire; hooks and fn do not count
	History     []Attempt     // one per run of fn, in order
}

// Attempt is one run of fn.
type Attempt struct {
	Number int           // from 1
	Began  time.Duration // since the call's start
	Took   time.Duration // inside fn
	Delay  time.Duration // slept before it
	Err    error         // what fn returned
}
