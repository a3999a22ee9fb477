package main

import (
	"fmt"
	"math"
)

// goal is one sentence of the design's section 3, "Speed".
type goal struct {
	words string // the design's own
	check func(r *results) (measured string, met bool, ok bool)
}

// goals are all of them. Where the design names one piece of work that was measured in several ways, each has a line.
var goals = []goal{
	atMost("full pipeline ≤ 1/10 of failsafe-go", fullOK, 1, ours, theirFailsafe, 1.0/10),
	atMost("… the same, where the breaker judges a rate over 10 s", fullRate, 1, ours, theirFailsafe, 1.0/10),
	atMost("and ≤ 0.6 × the same composition by hand", fullOK, 1, ours, theirHand, 0.6),
	atMost("… the same, where the breaker judges a rate over 10 s", fullRate, 1, ours, theirHand, 0.6),
	allocating("0 allocs", fullOK, ours, 0),
	allocating("… the same, where the breaker judges a rate over 10 s", fullRate, ours, 0),
	atMost("with an untouched attempt timeout ≤ 1/12", fullTimeout, 1, ours, theirFailsafe, 1.0/12),
	atMost("and ≤ 0.3 ×", fullTimeout, 1, ours, theirHand, 0.3),
	allocating("1 alloc", fullTimeout, ours, 1),
	atMost("with Done() used, no worse than by hand", fullDone, 1, ours, theirHand, 1),
	atMost("two failures then success ≤ 0.4 × by hand", fullTwice, 1, ours, theirHand, 0.4),
	atMost("refused by an open breaker ≤ 1/10 of failsafe-go", fullOpen, 1, ours, theirFailsafe, 1.0/10),
	allocating("and ≤ 1 alloc", fullOpen, ours, 1),
	atMost("or a full bulkhead ≤ 1/10 of failsafe-go", fullFull, 1, ours, theirFailsafe, 1.0/10),
	allocating("and ≤ 1 alloc", fullFull, ours, 1),
	atMost("breaker alone ≤ 0.5 × gobreaker", breakerOK, 1, ours, "gobreaker", 0.5),
	atMost("… the same, where it judges a rate over 10 s", breakerRate, 1, ours, "gobreaker", 0.5),
	atMost("limiter alone ≤ 0.7 × x/time/rate", limiterOK, 1, ours, "x/time/rate", 0.7),
	atMost("bulkhead ≤ x/sync/semaphore", bulkheadOK, 1, ours, "x/sync/semaphore", 1),
	{"a pipeline ≤ 800 heap bytes", func(r *results) (string, bool, bool) {
		b, ok := r.heap[pipelineBytes]
		return fmt.Sprintf("%.0f", b), b <= 800, ok
	}},
	atMost("with 2 goroutines on one pipeline no slower per call than by hand", fullOK, 2, ours, theirHand, 1),
	atMost("and 8", fullOK, 8, ours, theirHand, 1),
}

// atMost is a ratio of times.
func atMost(words, group string, width int, us, them string, factor float64) goal {
	return goal{words, func(r *results) (string, bool, bool) {
		a, b := r.cell(group, us, width), r.cell(group, them, width)
		if a == nil || b == nil {
			return "", false, false
		}
		x := ratio(a, b)
		return fmt.Sprintf("%.3f × (%s, at most %.3f)", x, them, factor), x <= factor, true
	}}
}

// allocating is a number of allocations per call.
func allocating(words, group, us string, most float64) goal {
	return goal{words, func(r *results) (string, bool, bool) {
		c := r.cell(group, us, 1)
		if c == nil {
			return "", false, false
		}
		return perCall(c.allocs), math.Round(c.allocs*100)/100 <= most, true
	}}
}
