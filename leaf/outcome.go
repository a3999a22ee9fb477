package leaf

import (
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
)

// Verdict says how an admitted call ended, where an error's type cannot. The zero value is Returned.
type Verdict uint8

const (
	// Returned: the callback returned, with an error or without, and nothing below applies. A success is always Returned,
	// however late it came.
	Returned Verdict = iota
	// TimedOut: the callback returned an error after this pipeline's own attempt timeout had fired. A failure.
	TimedOut
	// CallerCancelled: the caller went away. Neutral.
	CallerCancelled
	// CallerExpired: the caller's deadline or the pipeline's total timeout cut the attempt.
	// Equal deadlines belong to the outer one. A breaker judges it by its BlameAfter.
	CallerExpired
	// Panicked: the callback panicked or called runtime.Goexit. A failure, never retried.
	Panicked
	// NotRun: admitted here, refused further in, or ctx ended before the callback began. Neutral everywhere:
	// a probe's lease goes back, a limiter's token is refunded.
	NotRun
	// Ignored: it ran, but says nothing of the downstream: a nested pipeline's refusal, or an error whose [Judge] says so.
	// Neutral, nothing refunded.
	Ignored
)

// String is the name in snake case: returned, timed_out, caller_cancelled, caller_expired, panicked, not_run, ignored.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

var verdicts = [...]string{
	Returned: "returned", TimedOut: "timed_out", CallerCancelled: "caller_cancelled", CallerExpired: "caller_expired",
	Panicked: "panicked", NotRun: "not_run", Ignored: "ignored",
}

// Outcome is what a guard is told when an admitted call has ended.
type Outcome struct {
	// Verdict says how it ended.
	Verdict Verdict
	// Err is what the callback returned, unchanged; nil for Panicked; for NotRun the refusal or ctx's error, as data.
	Err error
	// Took is the time inside the callback; summed over the attempts for a breaker outside the retry.
	// 0 where no guard asked for it ([Timed]) and the call had no deadline.
	Took time.Duration
	// Given is the time that the call (not the attempt) had left when it started, before any guard was asked: until the
	// caller's deadline or the end of the pipeline's total timeout, whichever is earlier. 0 = no deadline.
	Given time.Duration
}

// Judged is what guards are told of an outcome that was found by the clock and the contexts alone: somebody's refusal that
// came out of the callback is [Ignored], through however many pipelines (pipeline.RanError), then an error that is a [Judge] has
// its say. A success, a [Panicked] and a [NotRun] (whose Err did not come out of the callback) stay as they are. [Do] and the
// pipeline apply it; whoever settles permits by hand may too.
func (o Outcome) Judged() Outcome {
	if o.Err == nil || o.Verdict == Panicked || o.Verdict == NotRun {
		return o
	}
	if refusal.Plain(o.Err) {
		if judge, ok := o.Err.(Judge); ok {
			return judge.Judge(o)
		}
		return o
	}
	if refusal.Is(o.Err) || refusal.Nested(o.Err) {
		o.Verdict = Ignored
	}
	if judge, ok := errors.AsType[interface {
		error
		Judge
	}](o.Err); ok {
		return judge.Judge(o)
	}
	return o
}
