package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// summary is what the story came to, in numbers; times are in ms.
type summary struct {
	Slots      int            `json:"slots"`
	MostInside int            `json:"most_inside"` // the bank, while Redis answered
	Shares     map[string]int `json:"shares"`      // calls of each process in the first chapter

	Lease     int `json:"lease_ms"`
	Held      int `json:"held"` // slots, by the process that was killed
	SlotsBack int `json:"slots_back_ms"`

	Rate      int     `json:"rate"`
	Burst     int     `json:"burst"`
	Calls     int     `json:"calls"` // in the third chapter
	CallsIn   int     `json:"calls_in_ms"`
	MostBurst float64 `json:"most_burst"` // a bucket that leaks at rate never had more in it

	OpenSpread   int `json:"open_spread_ms"`
	OpenAfter    int `json:"open_after_ms"`
	ClosedSpread int `json:"closed_spread_ms"`
	OpenFor      int `json:"open_for_ms"`
	Unhealthy    int `json:"unhealthy_ms"` // from open everywhere until the bank was well
	Refused      int `json:"refused"`
	Probes       int `json:"probes"`
	Scripts      int `json:"scripts"`
	ScriptsIn    int `json:"scripts_in_ms"`

	Outage          int            `json:"outage_ms"` // 0 = Redis was not stopped
	Lost            int            `json:"lost"`      // guards that went on alone
	Served          map[string]int `json:"served"`    // in the outage, by process
	Longest         int            `json:"longest_call_ms"`
	LongestInGuards int            `json:"longest_in_guards_ms"`
	Budget          int            `json:"budget_ms"` // of the guards
	OutageInside    int            `json:"outage_inside"`
	OutageSlots     int            `json:"outage_slots"` // the documented bound
	OutageCalls     int            `json:"outage_calls"`
	OutageLimit     int            `json:"outage_limit"` // the documented bound
	Recovery        int            `json:"recovery_ms"`

	LostElsewhere int    `json:"lost_elsewhere"` // guards that lost Redis while it ran: this machine was too busy
	Odd           string `json:"odd,omitempty"`  // an error that the story does not know
}

func (s *summary) setting(timeout time.Duration) {
	s.Slots, s.Rate, s.Burst, s.Lease, s.OpenFor = slots, rate, burst, ms(lease), ms(openFor)
	// The limiter asks, the bulkhead asks, and is told; in between the call may stand in line for a slot.
	s.Budget = ms(3*timeout + queueing)
}

// insideWas adds a chapter in which Redis answered.
func (s *summary) insideWas(c chapter) { s.MostInside = max(s.MostInside, c.mostInside) }

func (s *summary) burstWas(c chapter) { s.MostBurst = max(s.MostBurst, c.mostBurst) }

// outageWas is the chapter of the outage. The bounds are what the guards' documentation says: the limit itself, and beside it
// each process's share.
func (s *summary) outageWas(c chapter, tallies map[string]tally, lasted time.Duration) {
	s.Outage, s.Served = ms(outage), map[string]int{}
	var longest, inGuards time.Duration
	for who, t := range tallies {
		s.Served[who] = t.Served
		longest, inGuards = max(longest, t.Longest), max(inGuards, t.LongestInGuards)
	}
	s.Longest, s.LongestInGuards = ms(longest), ms(inGuards)
	s.OutageInside, s.OutageSlots = c.mostInside, slots+processes*(slots/processes)
	within := func(rate, burst int) int { return burst + int(float64(rate)*lasted.Seconds()) }
	s.OutageCalls = c.all()
	s.OutageLimit = within(rate, burst) + processes*within(rate/processes, burst/processes)
}

func (s *summary) forPeople() string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-14s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("bulkhead", "never more than %d calls inside, and %d are allowed; calls in the first chapter: %s", s.MostInside, s.Slots, byName(s.Shares))
	line("kill -9", "%d slots held, all back after %d ms; their lease is %d ms", s.Held, s.SlotsBack, s.Lease)
	line("limit", "%d calls in %d ms, %d + %d/s allow %d; counted at the bank, where those who waited for a slot come later",
		s.Calls, s.CallsIn, s.Burst, s.Rate, s.Burst+s.Rate*s.CallsIn/1000)
	line("circuit", "open in all processes within %d ms of the first, closed within %d ms", s.OpenSpread, s.ClosedSpread)
	line("", "while it was open: %d calls refused, %d reached the bank as probes; %d scripts at Redis in %d ms", s.Refused, s.Probes, s.Scripts, s.ScriptsIn)
	if s.Outage > 0 {
		line("outage", "Redis silent for %d ms: longest call %d ms, of it %d ms in the guards, whose budget is %d ms", s.Outage, s.Longest, s.LongestInGuards, s.Budget)
		line("", "served meanwhile: %s; at most %d inside (bound %d), %d calls (bound %d)", byName(s.Served), s.OutageInside, s.OutageSlots, s.OutageCalls, s.OutageLimit)
		line("", "shared again %d ms after Redis went on", s.Recovery)
	} else {
		line("outage", "not shown: this Redis is not ours to stop")
	}
	if s.LostElsewhere > 0 {
		line("this machine", "was so busy that %d guards went on alone for a moment while Redis ran: then their bounds are those of an outage", s.LostElsewhere)
	}
	if s.Odd != "" {
		line("unexpected", "%s", s.Odd)
	}
	return b.String()
}

func byName(n map[string]int) string {
	var parts []string
	for _, who := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", who, n[who]))
	}
	return strings.Join(parts, ", ")
}
