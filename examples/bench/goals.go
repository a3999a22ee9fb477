package main

import (
	"fmt"
	"math"
	"slices"
)

// goal is one sentence of the design's section 3, "Speed", or of an issue.
type goal struct {
	words string // the design's own
	check func(r *results) (measured string, met bool, ok bool)
	note  string // where the time goes and what is left to do, for the page on which it is missed; "" = nobody has found out
}

// goals are all of them.
func goals() []goal { return slices.Concat(designGoals, issueGoals) }

// designGoals: where the design names one piece of work that was measured in several ways, each has a line.
var designGoals = []goal{
	atMost("full pipeline ≤ 1/10 of failsafe-go", fullOK, 1, ours, theirFailsafe, 1.0/10).because(noteOK),
	atMost("… the same, where the breaker judges a rate over 10 s", fullRate, 1, ours, theirFailsafe, 1.0/10).because(noteOK),
	atMost("and ≤ 0.6 × the same composition by hand", fullOK, 1, ours, theirHand, 0.6).because(noteOK),
	atMost("… the same, where the breaker judges a rate over 10 s", fullRate, 1, ours, theirHand, 0.6).because(noteOK),
	allocating("0 allocs", fullOK, ours, 0),
	allocating("… the same, where the breaker judges a rate over 10 s", fullRate, ours, 0),
	atMost("with an untouched attempt timeout ≤ 1/12", fullTimeout, 1, ours, theirFailsafe, 1.0/12).because(noteUntouched),
	atMost("and ≤ 0.3 ×", fullTimeout, 1, ours, theirHand, 0.3).because(noteUntouched),
	allocating("1 alloc", fullTimeout, ours, 1),
	atMost("with Done() used, no worse than by hand", fullDone, 1, ours, theirHand, 1).because(noteDone),
	atMost("two failures then success ≤ 0.4 × by hand", fullTwice, 1, ours, theirHand, 0.4).because(noteTwice),
	atMost("refused by an open breaker ≤ 1/10 of failsafe-go", fullOpen, 1, ours, theirFailsafe, 1.0/10).because(noteRefused),
	allocating("and ≤ 1 alloc", fullOpen, ours, 1),
	atMost("or a full bulkhead ≤ 1/10 of failsafe-go", fullFull, 1, ours, theirFailsafe, 1.0/10).because(noteRefused),
	allocating("and ≤ 1 alloc", fullFull, ours, 1),
	atMost("breaker alone ≤ 0.5 × gobreaker", breakerOK, 1, ours, "gobreaker", 0.5).because(noteBreaker),
	atMost("… the same, where it judges a rate over 10 s", breakerRate, 1, ours, "gobreaker", 0.5).because(noteBreaker),
	atMost("limiter alone ≤ 0.7 × x/time/rate", limiterOK, 1, ours, "x/time/rate", 0.7),
	atMost("bulkhead ≤ x/sync/semaphore", bulkheadOK, 1, ours, "x/sync/semaphore", 1),
	{words: "a pipeline ≤ 800 heap bytes", check: func(r *results) (string, bool, bool) {
		b, ok := r.heap[pipelineBytes]
		return fmt.Sprintf("%.0f", b), b <= 800, ok
	}},
	atMost("with 2 goroutines on one pipeline no slower per call than by hand", fullOK, 2, ours, theirHand, 1),
	atMost("and 8", fullOK, 8, ours, theirHand, 1),
}

// issueGoals are those of the issues on HTTP and on events.
var issueGoals = []goal{
	atMost("HTTP with a retry ≤ 1.25 × plain net/http in time", httpOK, 1, ours, plainClient, 1.25).because(noteHTTP),
	atMost("… and with all guards", httpOK, 1, clientGuarded, plainClient, 1.25).because(noteHTTP),
	atMost("… the same with 2 goroutines", httpOK, 2, clientGuarded, plainClient, 1.25).because(noteHTTP),
	atMost("… and 8", httpOK, 8, clientGuarded, plainClient, 1.25).because(noteHTTP),
	atMost("… with a timeout alone, to net/http with Client.Timeout", httpOK, 1, clientTimed, plainTimed, 1.25).because(noteHTTP),
	atMost("… with both, to net/http with Client.Timeout", httpOK, 1, clientBoth, plainTimed, 1.25).because(noteHTTP),
	moreAllocations("HTTP with all guards ≤ 4 more allocations", httpOK, clientGuarded, plainClient, 4),
	moreAllocations("… with a timeout alone, than net/http with Client.Timeout", httpOK, clientTimed, plainTimed, 4),
	moreAllocations("… with both, than net/http with Client.Timeout", httpOK, clientBoth, plainTimed, 4),
	moreNanoseconds("events: ≤ 100 ns more when somebody does listen, where the breaker judges a rate over 10 s", eventsRate, 100).because(noteObserved),
	moreNanoseconds("… the same, where it judges a number of calls", eventsCount, 100).because(noteObserved),
}

func (g goal) because(note string) goal {
	g.note = note
	return g
}

// atMost is a ratio of times.
func atMost(words, group string, width int, us, them string, factor float64) goal {
	return goal{words: words, check: func(r *results) (string, bool, bool) {
		a, b := r.cell(group, us, width), r.cell(group, them, width)
		if a == nil || b == nil {
			return "", false, false
		}
		x := ratio(a, b)
		return fmt.Sprintf("%.3f × (%s, at most %.3f)", x, them, factor), x <= factor, true
	}}
}

// moreNanoseconds is what an observer costs.
func moreNanoseconds(words, group string, most float64) goal {
	return goal{words: words, check: func(r *results) (string, bool, bool) {
		with, without := r.cell(group, oursObserved, 1), r.cell(group, ours, 1)
		if with == nil || without == nil {
			return "", false, false
		}
		more, typical := difference(with, without)
		return fmt.Sprintf("%s ns in the quietest rounds (at most %.0f), %s as a median", nanoseconds(more), most, nanoseconds(typical)), more <= most, true
	}}
}

// allocating is a number of allocations per call.
func allocating(words, group, us string, most float64) goal {
	return goal{words: words, check: func(r *results) (string, bool, bool) {
		c := r.cell(group, us, 1)
		if c == nil {
			return "", false, false
		}
		return perCall(c.allocs), hundredths(c.allocs) <= most, true
	}}
}

// moreAllocations is a difference of allocations per call.
func moreAllocations(words, group, us, them string, most float64) goal {
	return goal{words: words, check: func(r *results) (string, bool, bool) {
		a, b := r.cell(group, us, 1), r.cell(group, them, 1)
		if a == nil || b == nil {
			return "", false, false
		}
		return fmt.Sprintf("%s to %s (at most %.0f more)", perCall(a.allocs), perCall(b.allocs), most), hundredths(a.allocs-b.allocs) <= most, true
	}}
}

func hundredths(v float64) float64 { return math.Round(v*100) / 100 }
