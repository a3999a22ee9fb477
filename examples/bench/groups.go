package main

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/pipeline"
)

// Names of the groups that the goals speak of.
const (
	floor         = "floors: what a call costs at least"
	fullOK        = "full pipeline, ok"
	fullRate      = "full pipeline, ok, breaker judges a rate over 10 s"
	fullRequest   = "full pipeline, ok, under a context that can be cancelled"
	eventsRate    = "events: full pipeline, ok, breaker judges a rate over 10 s"
	eventsCount   = "events: full pipeline, ok, breaker judges a number of calls"
	fullTimeout   = "full pipeline, ok, attempt timeout untouched"
	fullDone      = "full pipeline, ok, attempt timeout, fn asks for Done()"
	fullTwice     = "full pipeline, two failures, then ok"
	fullOpen      = "full pipeline, refused by an open breaker"
	fullSpent     = "full pipeline, refused by a spent rate limit"
	fullFull      = "full pipeline, refused by a full bulkhead"
	retryOK       = "retry alone, ok"
	retryTwice    = "retry alone, two failures, then ok"
	breakerOK     = "breaker alone, ok"
	breakerRate   = "breaker alone, ok, judges a rate over 10 s"
	breakerOpen   = "breaker alone, refused by an open one"
	limiterOK     = "limiter alone, a token"
	limiterSpent  = "limiter alone, none left"
	bulkheadOK    = "bulkhead alone, ok"
	bulkheadFull  = "bulkhead alone, full"
	timeoutOK     = "timeout alone, untouched"
	timeoutDone   = "timeout alone, fn asks for Done()"
	httpOK        = "HTTP, 200"
	httpTwice     = "HTTP, 503, 503, 200"
	cooldownOpen  = "cooldown alone, open"
	cooldownShut  = "cooldown alone, cooling"
	ours          = "fairlead"
	oursObserved  = "fairlead, observed"
	theirFailsafe = "failsafe-go"
	theirHand     = "by hand"
)

// groups are what is measured, in this order.
func groups() []group {
	full := func(name string, s shape, g group) group {
		g.name, g.widths = name, many
		g.by = []contender{fairleadFull(ours, s), failsafeFull(s, g.asks), handFull(s)}
		return g
	}
	ok := full(fullOK, shape{}, group{})
	paid := shape{budget: true}
	heard := func(context.Context, pipeline.Event) {}
	ok.by = append(ok.by, fairleadFull("fairlead, with a retry budget", paid), fairleadFull(oursObserved, shape{observe: heard}))
	rate := full(fullRate, shape{rate: true}, group{})
	rate.by = append(rate.by, fairleadFull(oursObserved, shape{rate: true, observe: heard}))
	events := func(name string, s shape) group {
		without := fairleadFull(ours, s)
		s.observe = heard
		return group{name: name, widths: alone, pace: quiet, by: []contender{without, fairleadFull(oursObserved, s)}}
	}
	request := full(fullRequest, shape{request: true}, group{})
	request.widths = alone
	return append([]group{
		{name: floor, widths: alone, by: floors()},
		ok,
		rate,
		request,
		full(fullTimeout, shape{attempt: limit}, group{}),
		full(fullDone, shape{attempt: limit}, group{asks: true}),
		full(fullTwice, shape{}, group{fails: 2}),
		full(fullOpen, shape{}, group{trip: true, fails: attempts, refuse: true}),
		full(fullSpent, shape{spent: true}, group{trip: true, fails: attempts, refuse: true}),
		full(fullFull, shape{full: true}, group{refuse: true}),
		events(eventsRate, shape{rate: true}),
		events(eventsCount, shape{}),
	}, leafGroups()...)
}

func leafGroups() []group {
	return []group{
		{name: retryOK, widths: many, by: retries()},
		{name: retryTwice, fails: 2, widths: many, by: retries()},
		{name: breakerOK, widths: many, by: breakers(false)},
		{name: breakerRate, widths: many, by: breakers(true)},
		{name: breakerOpen, fails: 1, trip: true, refuse: true, widths: many, by: breakers(false)},
		{name: limiterOK, widths: many, by: limiters(false)},
		{name: limiterSpent, trip: true, refuse: true, widths: many, by: limiters(true)},
		{name: bulkheadOK, widths: many, by: bulkheads(false)},
		{name: bulkheadFull, refuse: true, widths: many, by: bulkheads(true)},
		{name: cooldownOpen, widths: many, by: cooldowns(false)},
		{name: cooldownShut, refuse: true, widths: many, by: cooldowns(true)},
		{name: timeoutOK, widths: many, by: timeouts(false)},
		{name: timeoutDone, asks: true, widths: many, by: timeouts(true)},
		{name: httpOK, widths: many, pace: garbage, by: clients(0)},
		{name: httpTwice, fails: 2, widths: many, pace: garbage, by: clients(2)},
	}
}

// options are the flags.
type options struct {
	each   time.Duration // of a round
	rounds int
	calls  int // whose allocations are counted
	only   func(group string) bool
	write  string
}
