package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fairlead/fairlead/pipeline"
)

// summary is what one side makes of one phase, or of all of them.
type summary struct {
	calls    int
	ok       int
	yes, no  []time.Duration // how long users waited for a success, and for anything else; sorted
	attempts int
	retries  int
	cut      int            // attempts that the attempt timeout ended
	refused  int            // calls of which nothing was sent
	deferred int            // calls that the server asked to come back later than they could wait
	layers   map[string]int // who refused, the later attempts of a call included
	served   servedCount
}

// servedCount is served, read.
type servedCount struct{ requests, paid, peak int64 }

// inVain is what the server did, or began to do, for nobody's benefit.
func (c servedCount) inVain() int64 { return c.requests - c.paid }

func (c *served) read() servedCount {
	return servedCount{c.requests.Load(), c.paid.Load(), c.peak.Load()}
}

// summarize is one summary per phase, and the total behind them.
func summarize(calls []call, s *server) []summary {
	all := make([]summary, len(phases)+1)
	for i := range all {
		all[i].layers = map[string]int{}
	}
	total := &all[len(phases)]
	for _, c := range calls {
		all[c.phase].add(c)
		total.add(c)
	}
	for i := range s.perPhase {
		one := s.perPhase[i].read()
		all[i].served = one
		total.served.requests += one.requests
		total.served.paid += one.paid
		total.served.peak = max(total.served.peak, one.peak)
	}
	for _, sum := range all {
		slices.Sort(sum.yes)
		slices.Sort(sum.no)
	}
	return all
}

func (s *summary) add(c call) {
	s.calls++
	s.attempts += c.report.Attempts
	s.retries += max(0, c.report.Attempts-1)
	if c.err == nil {
		s.ok++
		s.yes = append(s.yes, c.took)
	} else {
		s.no = append(s.no, c.took)
	}
	if c.refused() {
		s.refused++
	}
	if c.report.Disposition == pipeline.Deferred {
		s.deferred++
	}
	if c.report.Layer != "" {
		s.layers[c.report.Layer]++
	}
	for _, attempt := range c.report.History {
		if errors.Is(attempt.Err, context.DeadlineExceeded) {
			s.cut++
		}
	}
}

// percentile is the nearest rank of sorted durations; ok is false where there are none.
func percentile(sorted []time.Duration, p int) (d time.Duration, ok bool) {
	if len(sorted) == 0 {
		return 0, false
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1], true
}
