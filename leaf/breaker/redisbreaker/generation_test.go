package redisbreaker

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/stretchr/testify/require"
)

// Section 13, test 14: outcomes of an earlier generation are ignored, also after FLUSHALL.
func TestEarlierGenerationsAreIgnored(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(2), MinCalls: 2, OpenFor: 10 * time.Second})
	a, b := f.join(), f.join()
	late := a.begin()
	lateToo := a.begin()
	a.run(1, failure)
	stale := a.args(a.view.Load().gen, a.id, 2) // a batch that was sent and is still on its way
	stale = append(append(stale, a.policy.Load().window...), 1, 1, "1 5 ")
	a.run(1, failure)
	a.is(breaker.Open)
	b.poll()
	f.to(10)
	b.begin()(success)
	b.is(breaker.Closed)

	late(failure) // a still thinks that it is half-open or open
	a.poll()
	a.is(breaker.Closed)
	lateToo(failure)
	a.sync()
	b.run(1, success)
	b.counts(1, 0)

	send := func() {
		reply, err := a.store.Do(bg, storeCall(leaf.OpRecord, record, stale))
		require.NoError(t, err)
		got, err := parse(reply)
		require.NoError(t, err)
		require.Zero(t, got.verdict)
	}
	send()
	b.run(1, success)
	b.counts(2, 0)

	s.Do(t, "flushall")
	b.run(1, success) // the store has it again
	require.Equal(t, "0", f.field("s"))
	send()
	b.run(1, success)
	b.counts(2, 0)
	b.is(breaker.Closed)
}

// A process that knows open stays open through a FLUSHALL, and the store adopts what it knows.
func TestOpenSurvivesFlushall(t *testing.T) {
	for _, know := range []string{"poll", "probe"} {
		t.Run(know, func(t *testing.T) {
			s := redistest.Start(t)
			f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second, OpenGrowth: 3})
			a := f.join()
			a.run(1, failure)
			f.to(10)
			a.begin()(failure) // open again, for 30 s
			gen := f.field("g")
			s.Do(t, "flushall")
			f.to(20)
			require.Equal(t, 20*time.Second, a.refused().Wait)
			if know == "poll" {
				a.poll()
				require.Equal(t, gen, f.field("g"), "the same generation, not a new one")
				b := f.join()
				require.Equal(t, 20*time.Second, b.refused().Wait, "nobody starts the open time anew")
				f.to(40)
				b.begin()(failure)
				require.Equal(t, 90*time.Second, b.Snapshot().Wait, "the growth goes on")
				return
			}
			f.to(40)
			end := a.begin() // a probe, not an ordinary call
			require.Equal(t, "2", f.field("s"))
			end(success)
			a.is(breaker.Closed)
		})
	}
}

// The store lost its data, and its clock stepped back: what is young has the smaller generation. A process that knows of an older
// closing does not close the circuit that opened since, and learns of it.
func TestAnOlderClosingOfAHigherGenerationClosesNothing(t *testing.T) {
	for _, state := range []string{"open", "half-open"} {
		t.Run(state, func(t *testing.T) {
			s := redistest.Start(t)
			f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
			old := f.join()
			f.to(3600)
			old.run(1, failure)
			f.to(3610)
			old.begin()(success)
			old.is(breaker.Closed)

			s.Do(t, "flushall")
			f.to(0)
			young := f.join()
			young.run(1, failure)
			young.is(breaker.Open)
			if state == "half-open" {
				f.to(10)
				defer young.begin()(failure)
			}
			old.run(1, success)
			require.Equal(t, "1", f.field("s"))
			require.NotEqual(t, breaker.Closed, old.State(), "it has learned")
			young.poll()
			require.NotEqual(t, breaker.Closed, young.State())

			f.to(20)
			old.begin()(success)
			old.is(breaker.Closed)
			young.poll()
			young.is(breaker.Closed)
		})
	}
}

// Without a step of the clock the higher generation is the younger: a replica that had not heard of the closing is told.
func TestAYoungerClosingClosesWhatTheStoreStillHasOpen(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	a := f.join()
	a.run(1, failure)
	open := s.Do(t, "dump", f.key())
	f.to(10)
	a.begin()(success)
	s.Do(t, "restore", f.key(), "0", open, "replace")
	require.Equal(t, "1", f.field("s"))
	a.run(1, success)
	require.Equal(t, "0", f.field("s"))
}

// A probe of an episode that the store has lost says nothing, and the next call begins the episode anew.
func TestHalfOpenSurvivesFlushall(t *testing.T) {
	s := redistest.Start(t)
	f := newFleetOn(t, s, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	a, b := f.join(), f.join()
	a.run(1, failure)
	f.to(10)
	lost := a.begin()
	s.Do(t, "flushall")
	lost(failure)
	require.Equal(t, "1", f.field("s"), "open, its time over")
	b.begin()(success) // b does not know: it was never told
	end := a.begin()
	end(success)
	a.is(breaker.Closed)
	b.run(1, success)
	b.run(1, success)
	b.counts(1, 0)
}

// What is known never moves to a lower generation.
func TestKnowledgeNeverGoesBack(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(1), OpenFor: 10 * time.Second})
	a := f.join()
	old, err := a.store.Do(bg, storeCall(leaf.OpAdmit, read, a.args())) // an answer that comes late
	require.NoError(t, err)
	a.run(1, failure)
	late, err := parse(old)
	require.NoError(t, err)
	a.learn(&late, a.now(), nil)
	a.tell()
	a.is(breaker.Open)
	require.Equal(t, []breaker.State{breaker.Closed, breaker.Open}, a.route())
}

// Section 13, test 16: a duplicate batch counts once.
func TestDuplicateBatchCountsOnce(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(100), FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
	m := f.join()
	m.run(3, failure)
	last := append(m.args(m.view.Load().gen, m.id, m.outbox.seq), m.policy.Load().window...)
	last = append(last, 1, 1, "1 3 ")
	for range 2 {
		_, err := m.store.Do(bg, storeCall(leaf.OpRecord, record, last))
		require.NoError(t, err)
	}
	m.run(1, success)
	m.counts(4, 3)
}

// Section 13, test 16: MinReporters holds: one sick node cannot open the circuit for all.
func TestMinReporters(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Time(10 * time.Second), MinCalls: 4, OpenFor: 10 * time.Second})
	f.opts.MinReporters = 2
	sick, well, late := f.join(), f.join(), f.join()
	f.to(0)
	sick.run(20, failure)
	sick.is(breaker.Closed)
	well.run(20, success)
	well.is(breaker.Closed)
	f.to(2)
	late.run(1, failure)
	late.is(breaker.Open) // 21 of 41, seen by two
	require.Equal(t, "failure rate 21/41", late.Snapshot().Reason)

	f.to(12)
	late.begin()(success)
	late.is(breaker.Closed)
	sick.poll()
	late.run(1, failure)
	f.to(22.1) // what late saw is no longer in the window
	sick.run(20, failure)
	sick.is(breaker.Closed)
	late.run(1, failure)
	late.is(breaker.Open)
}

// In a window without a time a failure of a reporter counts as long as the generation lasts.
func TestMinReportersOfACountWindow(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(10), MinCalls: 4, OpenFor: 10 * time.Second})
	f.opts.MinReporters = 2
	a, b := f.join(), f.join()
	f.to(0)
	a.run(1, failure)
	f.to(3600)
	b.run(2, failure)
	b.is(breaker.Closed)
	b.run(1, failure)
	b.is(breaker.Open)
}

// Reporters that are gone do not stay in the key for ever.
func TestReportersAreClearedUp(t *testing.T) {
	f := newFleet(t, breaker.Config{FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
	for i := range 20 {
		f.to(float64(i))
		f.join().run(1, failure)
	}
	f.to(200)
	last := f.join()
	last.run(1, success)
	fields, err := f.client.HKeys(bg, f.key()).Result()
	require.NoError(t, err)
	reporters := 0
	for _, name := range fields {
		if strings.HasPrefix(name, "r:") {
			reporters++
			require.Equal(t, "r:"+last.id, name)
		}
	}
	require.Equal(t, 1, reporters)
}
