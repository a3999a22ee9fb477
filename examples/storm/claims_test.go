package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const begins, ends = int(faultBegins / time.Second), int(faultEnds / time.Second)

// forEver is a scenario whose fault began before anybody called, and never ends: what a policy multiplies by, to the request.
func forEver(name string) scenario {
	sc := scenarioOf(name)
	sc.weather = func(int, time.Duration) weather { return weather{status: http.StatusServiceUnavailable} }
	sc.crashes = nil
	return sc
}

func TestNaiveRetriesPutThreeTimesTheLoadOnADownstreamThatFails(t *testing.T) {
	sc := forEver("outage")
	sc.fleet.calls = 60
	r := simulated(t, sc, policyOf("naive"))
	require.Greater(t, r.Summary.Calls, 4_000)
	require.Equal(t, 3*r.Summary.Calls, r.Summary.Requests)
}

func TestThreeLayersOfNaiveRetriesPutTwentySevenTimesTheLoad(t *testing.T) {
	sc := forEver("layers")
	sc.fleet.calls = 10
	r := simulated(t, sc, policyOf("naive"))
	require.Greater(t, r.Summary.Calls, 500)
	require.Equal(t, 27*r.Summary.Calls, r.Summary.Requests)
}

// "Once budgets bind" is once circuits are open: a process that makes 1.2 calls a second never meets its budget, see
// TestTheBudgetAloneBindsAtItsRatioAndItsFloor.
func TestAtTotalFailureTheFullDefaultPipelinePutsAtMost1Point2TimesTheOfferedLoad(t *testing.T) {
	r := storming(t, "outage", "full")
	assert.LessOrEqual(t, r.Summary.Mean, 1.2, "over the whole outage")
	assert.LessOrEqual(t, most(r.Series, begins+2, ends), 1.2, "in any second after the first two")
	assert.LessOrEqual(t, most(r.Series, begins, begins+2), 3.0, "in the first two")
	assert.GreaterOrEqual(t, total(r.Series.Attempts[ends-5:ends]), 25, "and it goes on probing")
}

func TestThreeLayersOfTheFullDefaultPipelinePutAtMost1Point4TimesTheOfferedLoad(t *testing.T) {
	r := storming(t, "layers", "full")
	assert.LessOrEqual(t, r.Summary.Mean, 1.4, "over the whole outage")
	assert.LessOrEqual(t, most(r.Series, begins+2, ends), 1.4, "in any second after the first two")
}

// A process that makes 60 calls a second, all of which fail, and a budget with no breaker: a retry for each fifth call, and 10
// a second beside them. That floor is what keeps it from 1.2.
func TestTheBudgetAloneBindsAtItsRatioAndItsFloor(t *testing.T) {
	const ttl, floor = 10, 10
	sc := forEver("outage")
	sc.fleet = fleet{clients: 1, calls: 60, workers: 4}
	r := simulated(t, sc, policyOf("budget"))
	for from := ttl; from+ttl <= seconds; from += ttl { // a tenth of the TTL is forgotten, or remembered, at once
		calls := total(r.Series.Begun[from : from+ttl])
		retries := total(r.Series.Attempts[from:from+ttl]) - calls
		assert.InDelta(t, 0.2*float64(calls)+floor*ttl, retries, 0.1*float64(retries), "from second %d", from)
	}
}

func TestAfterTheMetastableOutageTheNaiveFleetStaysDownAndOursRecoversWithinTenSeconds(t *testing.T) {
	for _, fault := range []string{"brownout", "slowdown", "deploy"} {
		t.Run(fault, func(t *testing.T) {
			naive := storming(t, fault, "naive")
			assert.Equal(t, -1, naive.Summary.Recovered, line(naive))
			assert.Zero(t, total(naive.Series.OK[ends+10:]), "not one call succeeds ever again")
			assert.Greater(t, total(naive.Series.Wasted[ends+10:]), 2_000, "while the downstream works as hard as it can")
			full := storming(t, fault, "full")
			assert.GreaterOrEqual(t, full.Summary.Recovered, 0, line(full))
			assert.LessOrEqual(t, full.Summary.Recovered, 10, line(full))
		})
	}
}

// A call in ten is given up after 20 ms, where a healthy answer takes 50. That it counts as a failure at all, half of its time being
// over, does no harm at this share; from three in ten on it would.
func TestOneImpatientCallerDoesNotOpenTheCircuitForAll(t *testing.T) {
	impatient := func(id uint64) bool { return mix(id, 'p')%10 == 0 }
	sc := scenarioOf("outage")
	sc.weather, sc.crashes = during(weather{}), nil
	sc.fleet = fleet{clients: 5, calls: 60, workers: 4} // each 12 calls a second: enough to be judged by their rate
	sc.patience = func(id uint64) time.Duration {
		if impatient(id) {
			return 20 * time.Millisecond
		}
		return patient(id)
	}
	r := simulated(t, sc, policyOf("full"))
	hasty := r.Summary.Calls - total(r.Series.OK)
	assert.InDelta(t, 0.1, ratio(hasty, r.Summary.Calls), 0.02, "the hasty fail, nobody else")
	assert.Zero(t, total(r.Series.Open)+total(r.Series.HalfOpen))
	assert.Zero(t, r.Summary.Refused)
}

// Every call that was sent, and was answered 429, comes back when it may, and succeeds, though other calls have closed the
// cooldown meanwhile. Those that find it closed at their beginning are told when to come, and send nothing.
func TestA429WaveDoesNotCancelItsOwnRetries(t *testing.T) {
	r := storming(t, "throttle", "full")
	sent := r.Summary.Calls - r.Summary.Refused
	require.Greater(t, r.Summary.Requests-sent, 500, "429s that were retried")
	assert.Equal(t, sent, total(r.Series.OK), line(r))
	assert.Zero(t, total(r.Series.Open)+total(r.Series.HalfOpen), "and a 429 opens no circuit")
	assert.Less(t, r.Summary.Worst, storming(t, "throttle", "naive").Summary.Worst)
}

// What retries are for: the balancer sends the next one elsewhere.
func TestOneSickInstanceIsHiddenFromTheUsers(t *testing.T) {
	none, full := storming(t, "sick", "none"), storming(t, "sick", "full")
	assert.InDelta(t, 0.80, none.Summary.During, 0.02, line(none))
	assert.Greater(t, full.Summary.During, 0.985, line(full))
	assert.Less(t, full.Summary.Worst, 1.5, line(full))
}

// Who comes when is the seed's alone: all policies of a scenario meet the same users.
func TestAllPoliciesMeetTheSameUsers(t *testing.T) {
	require.Equal(t, storming(t, "sick", "none").Series.Begun, storming(t, "sick", "full").Series.Begun)
}
