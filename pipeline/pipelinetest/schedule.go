package pipelinetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// AssertSchedule fails tb unless the attempts that rec has seen end began exactly at these instants, counted from its first
// event, which is the first call's start. Several calls make one schedule. An attempt is a run of the callback: what a guard
// refused is none. On a difference it shows both schedules side by side, each attempt with its distance to the one before,
// and then all events.
//
// To the nanosecond: use it in virtual time, and without jitter (retry.None, or a Rand of your own).
func AssertSchedule(tb testing.TB, rec *Recorder, want ...time.Duration) {
	tb.Helper()
	got := rec.attempts()
	if slices.Equal(want, got) {
		return
	}
	tb.Errorf("pipelinetest: attempts began at other instants\n%s\n%s", compare(want, got), rec)
}

// compare is a table: number, wanted and real instant with their steps, and what is wrong.
func compare(want, got []time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s %-26s %-26s", "attempt", "want", "got")
	for i := range max(len(want), len(got)) {
		fmt.Fprintf(&b, "\n%-8d %-26s %-26s %s", i+1, instant(want, i), instant(got, i), verdict(want, got, i))
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = "  " + strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// instant is at[i], and the step from the one before.
func instant(at []time.Duration, i int) string {
	switch {
	case i >= len(at):
		return "-"
	case i == 0:
		return at[i].String()
	default:
		return fmt.Sprintf("%v (+%v)", at[i], at[i]-at[i-1])
	}
}

func verdict(want, got []time.Duration, i int) string {
	switch {
	case i >= len(got):
		return "<- missing"
	case i >= len(want):
		return "<- unexpected"
	case got[i] > want[i]:
		return fmt.Sprintf("<- %v late", got[i]-want[i])
	case got[i] < want[i]:
		return fmt.Sprintf("<- %v early", want[i]-got[i])
	default:
		return ""
	}
}
