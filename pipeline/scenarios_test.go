package pipeline_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
)

const (
	ever = time.Hour              // longer than any limit
	due  = 400 * time.Millisecond // the caller's deadline, before each limit, behind one backoff
	soon = 50 * time.Millisecond
)

var errStore = &leaf.StoreError{Op: leaf.OpAdmit, Name: "store", Err: newNamed("redis"), NotExecuted: true}

// scenarios is the matrix's other axis.
func scenarios() []*scenario {
	all := slices.Concat(
		callerScenarios(), callbackScenarios(), cutScenarios(), hintScenarios(), lookScenarios(), optInScenarios(), unwindScenarios(),
	)
	for _, g := range guards {
		all = append(all, guardScenarios(g, 1)...)
		all = append(all, guardScenarios(g, 2)...)
	}
	pointers := make([]*scenario, len(all))
	for i := range all {
		all[i].learn()
		pointers[i] = &all[i]
	}
	return pointers
}

func failure(name string) step { return step{takes: work, err: newNamed(name)} }
func works() step              { return step{takes: work} }
func refusing(g layer, name string, wait time.Duration) step {
	return step{err: &refusal{name: name, wait: wait, most: g == bulk}}
}
func script(s ...step) []step { return s }

// guardScenarios are what can happen at one guard when it is asked for the nth time.
func guardScenarios(g layer, n int) []scenario {
	var all []scenario
	add := func(name string, last step, change func(*scenario)) {
		s := scenario{name: fmt.Sprintf("%v, asked %d: %s", g, n, name), needs: g, guard: map[layer][]step{}}
		if n == 2 {
			s.needs |= retrying
			s.fn = script(failure("first"), works())
		}
		s.guard[g] = append(make([]step, n-1), last)
		s.refuses = last.err != nil
		if change != nil {
			change(&s)
		}
		all = append(all, s)
	}
	hurried := func(s *scenario) { s.deadline = due }
	limited := func(s *scenario) { s.needs |= total }

	for _, wait := range []time.Duration{0, soon, 200 * time.Millisecond, ever} {
		add(fmt.Sprintf("refuses, wait %v", wait), refusing(g, "refusal", wait), nil)
	}
	add("refuses with a wait behind the deadline", refusing(g, "refusal", 550*time.Millisecond), hurried)
	add("refuses after a wait", step{takes: 30 * time.Millisecond, heeds: true, err: &refusal{name: "late refusal"}}, nil)
	add("the store fails", step{err: errStore}, nil)
	add("waits and admits", step{takes: 300 * time.Millisecond, heeds: true}, nil)
	add("the caller leaves while it waits", step{takes: ever, heeds: true, leavesIn: soon}, nil)
	add("the caller leaves as it admits", step{takes: soon, leaves: true}, nil)
	add("the caller leaves as it refuses", step{leaves: true, err: refusing(g, "refusal", soon).err}, nil)
	add("the caller expires while it waits", step{takes: ever, heeds: true}, hurried)
	add("the caller expires as it admits", step{takes: 700 * time.Millisecond}, hurried)
	add("the total timeout fires while it waits", step{takes: ever, heeds: true}, limited)
	add("the total timeout fires as it admits", step{takes: 2 * time.Second}, limited)
	add("panics", step{then: panics}, nil)
	add("exits", step{then: exits}, nil)
	return all
}

// callerScenarios are about a caller who ends the call outside of any layer.
func callerScenarios() []scenario {
	return []scenario{
		{name: "gone before the call", gone: true},
		{name: "expired before the call", deadline: due, overdue: true},
		{name: "a deadline that nothing reaches", deadline: due},
		{name: "leaves during the backoff", leavesAt: 60 * time.Millisecond, fn: script(failure("first"))},
		{name: "leaves during the second backoff", leavesAt: 200 * time.Millisecond, fn: script(failure("first"), failure("second"))},
		{name: "the backoff does not fit", deadline: 60 * time.Millisecond, fn: script(failure("first"))},
		{name: "the backoff ends at the deadline", deadline: work + backoff, fn: script(failure("first"))},
		{name: "the second backoff does not fit", deadline: 200 * time.Millisecond, fn: script(failure("first"), failure("second"))},
		{name: "the backoff does not fit the total timeout", needs: total, fn: script(step{takes: 1450 * time.Millisecond, err: newNamed("late")})},
	}
}

// callbackScenarios are about what fn does of its own.
func callbackScenarios() []scenario {
	permanent := retry.Permanent(newNamed("permanent"))
	nested := &refusal{name: "a nested refusal", wait: 30 * time.Millisecond}
	terse := &refusal{name: "a terse nested refusal"}
	loop := &retry.Error{Attempts: 2, Reason: retry.AttemptsExhausted, Last: newNamed("the nested loop's failure")}
	return []scenario{
		{name: "ok"},
		{name: "fails", fn: script(failure("first"), failure("second"), failure("third"))},
		{name: "fails, then ok", fn: script(failure("first"), works())},
		{name: "fails twice, then ok", fn: script(failure("first"), failure("second"), works())},
		{name: "fails, the retry budget is empty", fn: script(failure("first")), broke: true},
		{name: "permanent", fn: script(step{takes: work, err: permanent})},
		{name: "fails, then permanent", fn: script(failure("first"), step{err: permanent})},
		{name: "nested refusal", fn: script(step{takes: work, err: nested})},
		{name: "nested refusal without a wait", fn: script(step{takes: work, err: terse})},
		{name: "fails, then nested refusal", fn: script(failure("first"), step{err: nested})},
		{name: "nested retry error", fn: script(step{takes: work, err: loop})},
		{name: "nested refusal as the caller leaves", fn: script(step{takes: work, leaves: true, err: nested})},
		{name: "nested retry error as the caller leaves", fn: script(step{takes: work, leaves: true, err: loop})},
		{name: "permanent as the caller leaves", fn: script(step{takes: work, leaves: true, err: permanent})},
		{name: "fails, then nested retry error", fn: script(failure("first"), step{err: loop})},
	}
}

// cutScenarios are about who ends fn.
func cutScenarios() []scenario {
	cut := func(s step) step { s.takes, s.heeds, s.err = ever, true, newNamed("cut"); return s }
	deaf := func(d time.Duration, err error) step { return step{takes: d, err: err} }
	late := newNamed("late")
	return []scenario{
		{name: "the caller leaves during fn", fn: script(cut(step{leavesIn: soon}))},
		{name: "the caller leaves during fn, which says so", fn: script(cut(step{leavesIn: soon, says: true}))},
		{name: "the caller leaves during the second run", needs: retrying, fn: script(failure("first"), cut(step{leavesIn: soon}))},
		{name: "the caller leaves as fn succeeds", fn: script(step{takes: work, leaves: true})},
		{name: "the caller leaves as fn fails", fn: script(step{takes: work, leaves: true, err: late})},
		{name: "the caller expires during fn", deadline: due, fn: script(cut(step{}))},
		{name: "the caller expires during fn, which says so", deadline: due, fn: script(cut(step{says: true}))},
		{name: "the caller expires during the second run", needs: retrying, deadline: due, fn: script(failure("first"), cut(step{}))},
		{name: "the caller expires, fn does not care and fails", deadline: due, fn: script(deaf(700*time.Millisecond, late))},
		{name: "the caller expires, fn does not care and succeeds", deadline: due, fn: script(deaf(700*time.Millisecond, nil))},
		{name: "a limit fires during each run", fn: script(cut(step{}))},
		{name: "a limit fires during each run, fn says so", fn: script(cut(step{says: true}))},
		{name: "a limit fires during the first run, then ok", needs: attempt, fn: script(cut(step{}), works())},
		{name: "the attempt timeout passed, fn does not care and fails", needs: attempt, fn: script(deaf(1200*time.Millisecond, late), works())},
		{name: "the attempt timeout passed, fn does not care and succeeds", needs: attempt, fn: script(deaf(1200*time.Millisecond, nil))},
		{name: "all limits passed, fn does not care and fails", fn: script(deaf(2*time.Second, late))},
		{name: "all limits passed, fn does not care and succeeds", fn: script(deaf(2*time.Second, nil))},
		{name: "the total timeout fires in the second run", needs: retrying | total, fn: script(deaf(600*time.Millisecond, late), cut(step{}))},
		{name: "total and attempt timeout end together", needs: retrying | total | attempt, fn: script(deaf(400*time.Millisecond, late), cut(step{}))},
		{name: "total and attempt timeout end together, unnoticed", needs: retrying | total | attempt,
			fn: script(deaf(400*time.Millisecond, late), deaf(1100*time.Millisecond, late))},
		{name: "the caller's deadline and the total timeout end together", needs: total, deadline: totalLimit, fn: script(cut(step{}))},
		{name: "the caller's deadline and the attempt timeout end together", needs: attempt, deadline: attemptLimit, fn: script(cut(step{}))},
	}
}

// hintScenarios are about waits that failures ask for, and about failures that judge themselves.
func hintScenarios() []scenario {
	ignored := func(o leaf.Outcome) leaf.Outcome { o.Verdict = leaf.Ignored; return o }
	success := func(o leaf.Outcome) leaf.Outcome { o.Verdict, o.Err = leaf.Returned, nil; return o }
	ask := func(wait time.Duration, judge func(leaf.Outcome) leaf.Outcome) step {
		return step{takes: work, err: &asked{name: fmt.Sprintf("asked for %v", wait), wait: wait, judge: judge}}
	}
	return []scenario{
		{name: "429, then ok", fn: script(ask(300*time.Millisecond, ignored), works())},
		{name: "429 each time", fn: script(ask(300*time.Millisecond, ignored))},
		{name: "a wait shorter than the backoff, then ok", fn: script(ask(soon, nil), works())},
		{name: "no wait, then ok", fn: script(ask(0, nil), works())},
		{name: "a negative wait, then ok", fn: script(ask(-time.Second, nil), works())},
		{name: "the longest wait that is slept, then ok", fn: script(ask(maxRetryAfter, nil), works())},
		{name: "a wait too long", fn: script(ask(ever, ignored))},
		{name: "fails, then a wait too long", fn: script(failure("first"), ask(ever, ignored))},
		{name: "a wait behind the deadline", deadline: due, fn: script(ask(550*time.Millisecond, ignored))},
		{name: "a wait that ends at the deadline", deadline: due, fn: script(ask(due-work, ignored))},
		{name: "a limit fires during each run, 429", fn: script(step{takes: ever, heeds: true, err: &asked{name: "slow 429", wait: soon, judge: ignored}})},
		{name: "the caller leaves during fn, 429", fn: script(step{takes: ever, heeds: true, leavesIn: soon, err: &asked{name: "slow 429", wait: soon, judge: ignored}})},
		{name: "404, a success for guards", fn: script(ask(0, success), works())},
		{name: "the caller leaves during the asked wait", leavesAt: 200 * time.Millisecond, fn: script(ask(300*time.Millisecond, nil))},
	}
}

// lookScenarios are about what breaker and cooldown say before the backoff is slept.
func lookScenarios() []scenario {
	cool := func(wait time.Duration) []error { return []error{&refusal{name: "cooling", wait: wait}} }
	open := []error{&refusal{name: "open", wait: 200 * time.Millisecond}}
	failing := script(failure("first"), works())
	return []scenario{
		{name: "the breaker opened", needs: breaking | retrying, looks: map[layer][]error{breaking: open}, fn: failing},
		{name: "the breaker opened after the second run", needs: breaking | retrying, looks: map[layer][]error{breaking: {nil, open[0]}}, fn: script(failure("first"), failure("second"))},
		{name: "the cooldown began", needs: cooling | retrying, looks: map[layer][]error{cooling: cool(200 * time.Millisecond)}, fn: failing},
		{name: "the cooldown began, for less than the backoff", needs: cooling | retrying, looks: map[layer][]error{cooling: cool(soon)}, fn: failing},
		{name: "the cooldown began, too long", needs: cooling | retrying, looks: map[layer][]error{cooling: cool(ever)}, fn: failing},
		{name: "the cooldown began, behind the deadline", needs: cooling | retrying, deadline: due, looks: map[layer][]error{cooling: cool(550 * time.Millisecond)}, fn: failing},
		{name: "the cooldown began and refuses once more", needs: cooling | retrying, looks: map[layer][]error{cooling: cool(200 * time.Millisecond)},
			guard: map[layer][]step{cooling: script(step{}, step{err: &refusal{name: "still cooling", wait: soon}})}, fn: failing},
		{name: "the cooldown refuses twice, the caller leaves", needs: cooling | retrying, leavesAt: 250 * time.Millisecond,
			guard: map[layer][]step{cooling: script(step{}, step{err: &refusal{name: "cooling", wait: 100 * time.Millisecond}}, step{err: &refusal{name: "still cooling", wait: 100 * time.Millisecond}})}, fn: failing},
		{name: "the cooldown refuses a second attempt, the last allowed ones fail", needs: cooling | retrying,
			guard: map[layer][]step{cooling: script(step{}, step{err: &refusal{name: "cooling", wait: soon}}, step{}, step{})},
			fn:    script(failure("first"), failure("second"), failure("third"), works())},
	}
}

// optInScenarios are about refusals that are retried where the plan says so.
func optInScenarios() []scenario {
	var all []scenario
	for _, g := range []layer{limiting, bulk} {
		no := func(n int, wait time.Duration) step {
			return refusing(g, fmt.Sprintf("refusal %d", n), wait)
		}
		add := func(name string, guard []step, s scenario) {
			s.name = fmt.Sprintf("%v: %s", g, name)
			s.needs, s.refuses, s.guard = g|retrying, true, map[layer][]step{g: guard}
			all = append(all, s)
		}
		add("refuses twice", script(no(1, 0), no(2, 0)), scenario{})
		add("refuses three times", script(no(1, 0), no(2, 0), no(3, 0), no(4, 0)), scenario{})
		add("refuses with a wait between two runs", script(step{}, no(1, 200*time.Millisecond)), scenario{fn: script(failure("first"), works())})
		add("refuses with a wait too long between two runs", script(step{}, no(1, ever)), scenario{fn: script(failure("first"), works())})
		add("refuses, then fn fails", script(no(1, 0)), scenario{fn: script(failure("first"), failure("second"), works())})
		add("refuses between two runs", script(step{}, no(1, 0)), scenario{fn: script(failure("first"), works())})
		add("refuses twice after a run", script(step{}, no(1, 0), no(2, 0)), scenario{fn: script(failure("first"), works())})
		add("refuses, the backoff does not fit", script(no(1, 0)), scenario{deadline: 60 * time.Millisecond})
		add("refuses, the caller leaves during the backoff", script(no(1, 0)), scenario{leavesAt: 60 * time.Millisecond})
		add("refuses, the retry budget is empty", script(no(1, 0)), scenario{broke: true})
	}
	for _, g := range []layer{limiting, bulk} {
		all = append(all, scenario{
			name: fmt.Sprintf("%v refuses, the breaker has opened", g), needs: g | breaking | retrying, refuses: true, opensAt: soon,
			guard: map[layer][]step{g: script(step{}, refusing(g, "refusal", 0))}, fn: script(failure("first"), works()),
		})
	}
	return append(all, scenario{
		name: "rate limit and bulkhead refuse, one after the other", needs: limiting | bulk | retrying, refuses: true,
		guard: map[layer][]step{
			limiting: script(refusing(limiting, "limited", 200*time.Millisecond)), bulk: script(refusing(bulk, "full", 300*time.Millisecond)),
		},
	})
}

// unwindScenarios are about panics and runtime.Goexit in fn, and in a guard's Settle.
func unwindScenarios() []scenario {
	all := []scenario{
		{name: "fn panics", fn: script(step{takes: work, then: panics})},
		{name: "fn exits", fn: script(step{takes: work, then: exits})},
		{name: "fn fails, then panics", fn: script(failure("first"), step{takes: work, then: panics})},
		{name: "fn fails, then exits", fn: script(failure("first"), step{takes: work, then: exits})},
		{name: "fn panics as the caller leaves", fn: script(step{takes: work, leaves: true, then: panics})},
	}
	for _, g := range guards {
		all = append(all,
			scenario{name: fmt.Sprintf("fn panics, and %v's Settle", g), needs: g, fn: script(step{then: panics}), settlePanics: []layer{g}},
			scenario{name: fmt.Sprintf("fn exits, %v's Settle panics", g), needs: g, fn: script(step{then: exits}), settlePanics: []layer{g}},
			scenario{name: fmt.Sprintf("%v's Settle panics", g), needs: g, settlePanics: []layer{g}},
			scenario{name: fmt.Sprintf("%v's Settle panics after a failure", g), needs: g, fn: script(failure("first")), settlePanics: []layer{g}},
			scenario{name: fmt.Sprintf("%v's Settle panics as the bulkhead refuses", g), needs: g | bulk, refuses: true, settlePanics: []layer{g},
				guard: map[layer][]step{bulk: script(refusing(bulk, "refusal", 0))}},
		)
	}
	return all
}
