package breaker

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
)

// result is what one outcome means for the breaker; the zero result is neutral.
type result uint8

const (
	neutral   result = 0
	succeeded result = 1 << iota
	failed
	slow // alone: a call that says nothing but that it lasted
)

// judge is the one place that decides what an outcome means. It calls IsFailure, whose panic is the caller's to handle.
func (p *policy) judge(o leaf.Outcome) result {
	lasted := neutral
	if p.SlowCall > 0 && o.Took >= p.SlowCall {
		lasted = slow
	}
	switch {
	case o.Verdict == leaf.Returned && o.Err == nil && p.IsFailure == nil: // most calls, so first
		return succeeded | lasted
	case o.Verdict == leaf.NotRun, o.Verdict == leaf.Ignored, refusal.Is(o.Err):
		return neutral
	case o.Verdict == leaf.CallerCancelled:
		return lasted
	case o.Verdict == leaf.TimedOut, o.Verdict == leaf.Panicked:
		return failed | lasted
	case o.Verdict == leaf.CallerExpired && !p.blames(o):
		return neutral
	case p.isFailure(o.Err):
		return failed | lasted
	case o.Verdict == leaf.CallerExpired:
		return neutral
	}
	return succeeded | lasted
}

// blames says that the callback had its chance before the caller's deadline ended it.
func (p *policy) blames(o leaf.Outcome) bool {
	switch {
	case p.BlameAfter > 0:
		return o.Took >= p.BlameAfter
	case p.BlameAfter == Off:
		return false
	}
	half := o.Given > 0 && o.Took >= o.Given-o.Took // not Given/2, which rounds
	return half || o.Took >= 100*time.Millisecond
}

func (p *policy) isFailure(err error) bool {
	if p.IsFailure == nil {
		return err != nil
	}
	return p.IsFailure(err)
}

// totals is what a window holds.
type totals struct{ calls, failures, slow int }

// trips says whether what the window holds, with a row of so many failures at its end, opens the circuit, and why.
func (p *policy) trips(t totals, row int) (reason string, trip bool) {
	enough := t.calls >= p.MinCalls
	switch {
	case enough && p.FailureRate != Off && reaches(t.failures, t.calls, p.FailureRate):
		return fmt.Sprintf("failure rate %d/%d", t.failures, t.calls), true
	case p.FailureCount > 0 && t.failures >= p.FailureCount:
		return fmt.Sprintf("%d failures in the window", t.failures), true
	case !enough && p.Consecutive != Off && row >= p.Consecutive:
		return fmt.Sprintf("%d failures in a row", row), true
	case enough && p.SlowCall > 0 && reaches(t.slow, t.calls, p.SlowRate):
		return fmt.Sprintf("slow rate %d/%d", t.slow, t.calls), true
	}
	return "", false
}

// reaches says whether part/whole >= rate, exactly.
//
// The rate that a program writes, 0.29 or 2.0/3, is the float64 next to the fraction that it means. A division rounds to
// that same float64, so equal fractions compare equal, and distinct ones stay apart as long as the product of their
// denominators is below 2^52. A product does not: 0.29*100 is 28.999999999999996.
func reaches(part, whole int, rate float64) bool {
	return float64(part)/float64(whole) >= rate
}
