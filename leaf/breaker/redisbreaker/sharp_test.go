package redisbreaker

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/stretchr/testify/require"
)

// Generation = max(gen+1, TIME µs): what happens after a loss is newer than all that was known before it.
func TestWhatHappensAfterALossIsNewer(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	a := f.join()
	a.run(1, failure)
	f.to(10)
	a.begin()(success)
	a.is(breaker.Closed)
	s.Do(t, "flushall")
	f.to(20)
	b := f.join() // knows nothing
	b.run(1, failure)
	b.is(breaker.Open)
	a.run(1, success) // of a generation that was higher than the store's was
	a.is(breaker.Open)
	require.Equal(t, "1", f.field("s"))
}

// A probe without a lease leaves no trace in the key: its generation alone tells that its episode is over.
func TestUnboundProbeOfAnEarlierEpisode(t *testing.T) {
	f, m := open(t, breaker.Config{ProbeLease: breaker.NoLease, ProbeSuccesses: 2}, 1)
	f.to(10)
	late, lateToo := m[0].begin(), m[0].begin()
	m[0].begin()(failure)
	f.to(20)
	m[0].begin()(success) // of two
	late(success)
	m[0].is(breaker.HalfOpen)
	lateToo(failure)
	m[0].is(breaker.HalfOpen)
	m[0].begin()(success)
	m[0].is(breaker.Closed)
}

// A second sending of an admission is the same probe, not a second one.
func TestProbeIsAdmittedOnce(t *testing.T) {
	f, m := open(t, breaker.Config{}, 1)
	f.to(10)
	args := m[0].args("the probe", 0, 1)
	for range 2 {
		reply, err := m[0].store.Do(bg, storeCall(leaf.OpAdmit, admit, args))
		require.NoError(t, err)
		a, err := parse(reply)
		require.NoError(t, err)
		require.EqualValues(t, probeAdmitted, a.verdict)
		require.Equal(t, 1, a.probes)
	}
}

// A failure that has left the window is no longer part of the row.
func TestRowDoesNotOutliveTheWindow(t *testing.T) {
	f := newFleet(t, breaker.Config{Consecutive: 3, Window: breaker.Time(10 * time.Second)})
	m := f.join()
	f.to(0)
	m.run(2, failure)
	f.to(11)
	m.run(2, failure)
	m.is(breaker.Closed)
	m.run(1, failure)
	m.is(breaker.Open)
	require.Equal(t, "3 failures in a row", m.Snapshot().Reason)
}

// After any result: the success that completes MinCalls trips, also in the middle of a batch.
func TestSuccessThatCompletesMinCallsTrips(t *testing.T) {
	f := newFleet(t, breaker.Config{MinCalls: 6, Consecutive: breaker.Off})
	m := f.join()
	for i := range 20 {
		o := success
		if i < 3 {
			o = failure
		}
		quiet(m, o)
	}
	m.sync()
	m.is(breaker.Open)
	require.Equal(t, "failure rate 3/6", m.Snapshot().Reason)
}

// A refusal that was on its way when a slot came back does not stand.
func TestRefusalDoesNotOutliveARelease(t *testing.T) {
	var p probes
	p.init()
	_, released := p.number()
	p.refuse(7, released, 0, time.Second)
	require.Equal(t, time.Second-1, p.refused(7, 1))
	require.Zero(t, p.refused(8, 1), "another episode")
	require.Zero(t, p.refused(7, int64(stale)), "not for long")
	require.Zero(t, p.refused(7, -1), "the clock went back")
	_, released = p.number()
	p.release()
	require.Zero(t, p.refused(7, 1))
	p.refuse(7, released, 0, time.Second)
	require.Zero(t, p.refused(7, 1))
}

// Results that were still waiting when the generation ended are of the one that ended.
func TestWaitingResultsEndWithTheirGeneration(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(10), Consecutive: breaker.Off})
	a, b := f.join(), f.join()
	quiet(a, failure)
	require.NoError(t, b.Reset(bg))
	a.poll()
	a.run(1, success)
	a.counts(1, 0)
}

// ForceClosed admits in an outage, too, whatever the local breaker thinks.
func TestForceClosedHoldsInAnOutage(t *testing.T) {
	s, _, m, _ := outage(t, leaf.FailLocal, breaker.Config{Consecutive: 2, OpenFor: time.Hour})
	require.NoError(t, m.ForceClosed(bg))
	m.run(2, failure)
	require.Equal(t, breaker.Open, m.local.State())
	s.Kill(t)
	m.begin()(failure)
	m.down()
	m.begin()(failure)
	m.is(breaker.Closed)
}
