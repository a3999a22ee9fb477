package breaker

import (
	"fmt"

	"github.com/fairlead/fairlead/internal/breaking"
)

// result is what one outcome means for the breaker; the zero result is neutral.
type result = breaking.Result

const (
	neutral   = breaking.Neutral
	succeeded = breaking.Succeeded
	failed    = breaking.Failed
	slow      = breaking.Slow
)

// totals is what a window holds.
type totals struct{ calls, failures, slow int }

// trips says whether what the window holds, with a row of so many failures at its end, opens the circuit, and why.
func (p *policy) trips(t totals, row int) (reason string, trip bool) {
	enough := t.calls >= p.MinCalls
	switch {
	case enough && p.FailureRate != Off && reaches(t.failures, t.calls, p.FailureRate):
		return fmt.Sprintf("failure rate %d/%d", t.failures, t.calls), true
	case p.FailureCount > 0 && t.failures >= p.FailureCount:
		return plural(t.failures, "failure") + " in the window", true
	case !enough && p.Consecutive != Off && row >= p.Consecutive:
		return plural(row, "failure") + " in a row", true
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
