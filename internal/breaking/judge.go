// Package breaking is what the local breaker and the one that a fleet shares have in common and nobody outside may use: what
// one outcome means.
package breaking

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
)

// Result is what one outcome means for a breaker; the zero Result is Neutral.
type Result uint8

const (
	Neutral   Result = 0
	Succeeded Result = 1 << iota
	Failed
	Slow // alone: a call that says nothing but that it lasted
)

// Off is the BlameAfter that never blames.
const Off = -1

// Judge is the part of a breaker's configuration that judges, with its defaults filled in.
type Judge struct {
	SlowCall   time.Duration    // <= 0 = nothing is slow
	BlameAfter time.Duration    // 0 = half of Outcome.Given, at most 100 ms; Off = never
	IsFailure  func(error) bool // nil = err != nil
	Ignore     func(error) bool // nil = nothing
}

// Of is the one place that decides what an outcome means. It calls Ignore and IsFailure, whose panic is the caller's to handle.
func (j *Judge) Of(o leaf.Outcome) Result {
	lasted := Neutral
	if j.SlowCall > 0 && o.Took >= j.SlowCall {
		lasted = Slow
	}
	switch {
	case o.Verdict == leaf.Returned && o.Err == nil && j.IsFailure == nil: // most calls, so first
		return Succeeded | lasted
	case o.Verdict == leaf.NotRun, o.Verdict == leaf.Ignored, refusal.Is(o.Err), refusal.Nested(o.Err):
		return Neutral
	case o.Verdict == leaf.CallerCancelled:
		return lasted
	case o.Verdict == leaf.TimedOut, o.Verdict == leaf.Panicked:
		return Failed | lasted
	case o.Verdict == leaf.CallerExpired && !j.blames(o):
		return lasted
	case o.Err != nil && j.Ignore != nil && j.Ignore(o.Err):
		if o.Verdict == leaf.CallerExpired {
			return lasted // blamed or not: the longer a call hung, the less it would count
		}
		return Neutral
	case j.isFailure(o.Err):
		return Failed | lasted
	case o.Verdict == leaf.CallerExpired:
		return lasted
	case errors.Is(o.Err, context.DeadlineExceeded), errors.Is(o.Err, context.Canceled):
		return lasted // expiry that IsFailure does not count is no success either: it would close a half-open circuit
	}
	return Succeeded | lasted
}

// blames says that the callback had its chance before the caller's deadline ended it.
func (j *Judge) blames(o leaf.Outcome) bool {
	switch {
	case j.BlameAfter > 0:
		return o.Took >= j.BlameAfter
	case j.BlameAfter == Off:
		return false
	}
	half := o.Given > 0 && o.Took >= o.Given-o.Took // not Given/2, which rounds
	return half || o.Took >= 100*time.Millisecond
}

func (j *Judge) isFailure(err error) bool {
	if j.IsFailure == nil {
		return err != nil
	}
	return j.IsFailure(err)
}
