package main

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(200)
	goleak.VerifyTestMain(m)
}

// scenarioOf is a scenario with half of its fleet, and half of its downstream: the same for each process, and half the work.
func scenarioOf(name string) scenario {
	sc := scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })]
	if sc.fleet == whole {
		sc.fleet = fleet{clients: whole.clients / 2, calls: whole.calls / 2, workers: whole.workers / 2}
	}
	return sc
}

func policyOf(name string) policy {
	return policies[slices.IndexFunc(policies, func(p policy) bool { return p.name == name })]
}

// storming is a run by seed 1. One that several tests look at happens once.
func storming(t *testing.T, sc, pol string) run {
	t.Helper()
	known.Lock()
	defer known.Unlock()
	key := sc + "/" + pol
	if _, ok := known.runs[key]; !ok {
		known.runs[key] = simulated(t, scenarioOf(sc), policyOf(pol))
	}
	return known.runs[key]
}

var known = struct {
	sync.Mutex
	runs map[string]run
}{runs: map[string]run{}}

// simulated runs in a bubble, which panics when a goroutine is left.
func simulated(t *testing.T, sc scenario, pol policy) (r run) {
	t.Helper()
	var err error
	synctest.Test(t, func(*testing.T) { r, err = simulate(sc, pol, 1) })
	require.NoError(t, err)
	return r
}

// most is the largest of requests per call in the seconds from … to-1.
func most(s series, from, to int) (worst float64) {
	for i := from; i < to; i++ {
		worst = max(worst, ratio(s.Attempts[i], s.Begun[i]))
	}
	return worst
}

func line(r run) string { return fmt.Sprintf("%s: %+v", r.Policy, r.Summary) }
