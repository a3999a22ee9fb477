package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/examples/redisserver"
)

// lost is a busy machine's allowance: where a guard could not reach Redis in time, though it ran, the documented bound of an
// outage holds for that moment, and no other.
func (s *summary) lost(while, otherwise int) int {
	if s.LostElsewhere > 0 {
		return otherwise
	}
	return while
}

// told runs the story and gives its events.
func told(t *testing.T, args ...string) (events []event, end *summary) {
	t.Helper()
	var out, problems bytes.Buffer
	// The timeout is one that a machine with nothing but busy neighbours keeps.
	code := start(t.Context(), append([]string{"-json", "-timeout", "250ms"}, args...), &out, &problems)
	require.Zero(t, code, "%s\n%s", problems.String(), out.String())
	for line := range strings.Lines(out.String()) {
		var e event
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		events = append(events, e)
	}
	t.Log(out.String())
	end = events[len(events)-1].Summary
	require.NotNil(t, end, "the last line is the summary")
	return events, end
}

func count(events []event, what, who, text string) (n int) {
	for _, e := range events {
		if e.What == what && e.Who == who && strings.Contains(e.Text, text) {
			n++
		}
	}
	return n
}

// sharedInvariants are what holds while Redis answers.
func sharedInvariants(t *testing.T, events []event, s *summary) {
	t.Helper()
	assert.Empty(t, s.Odd, "an error that nobody expected")

	assert.LessOrEqual(t, s.MostInside, s.lost(slots, slots+processes*(slots/processes)), "never above the limit")
	assert.GreaterOrEqual(t, s.MostInside, slots, "and all of it was used")
	for _, who := range names {
		assert.Positive(t, s.Shares[who], "%s was not starved", who)
	}

	assert.GreaterOrEqual(t, s.Held, 2)
	assert.LessOrEqual(t, s.SlotsBack, s.Lease+1000, "the slots of a dead process are back within its lease")
	assert.GreaterOrEqual(t, s.SlotsBack, s.Lease/3, "and not before it: it was renewed at a third of it at the latest")

	allowed := float64(burst + rate/2) // half a second from the decision in Redis to the bank's count
	assert.LessOrEqual(t, s.MostBurst, float64(s.lost(int(allowed), int(allowed)+burst+rate*s.CallsIn/1000)), "never above the rate")
	assert.Greater(t, s.Calls, rate*s.CallsIn/1000/2, "and it was used")

	for _, who := range names {
		assert.Positive(t, count(events, "circuit", who, "from closed to open"), "%s opened", who)
		assert.Positive(t, count(events, "circuit", who, "to closed"), "%s closed", who)
	}
	assert.Less(t, s.OpenSpread, 2000)
	assert.Less(t, s.ClosedSpread, 3000)
	assert.GreaterOrEqual(t, s.Probes, 1)
	assert.LessOrEqual(t, s.Probes, s.Unhealthy/s.OpenFor+1, "one probe for the fleet per open time")
	assert.Positive(t, s.Refused)
	assert.Less(t, s.Scripts, s.Refused/4+4, "an open circuit costs no round trip: the poll alone asks, once a second")

	assert.Equal(t, 2, count(events, "note", "B", "starts, process"), "B came back")
}

func TestTheFleetKeepsItsLimitsThroughAKillAnOutageAndABadService(t *testing.T) {
	t.Parallel()
	began := time.Now()
	events, s := told(t)
	assert.Less(t, time.Since(began), 30*time.Second)
	sharedInvariants(t, events, s)

	assert.Equal(t, 2000, s.Outage)
	assert.Positive(t, s.Lost, "the guards noticed")
	assert.Less(t, s.LongestInGuards, s.Budget+700, "no call waited for Redis longer than the guards' budget")
	for _, who := range names {
		assert.Positive(t, s.Served[who], "%s went on within its share", who)
	}
	assert.LessOrEqual(t, s.OutageInside, s.OutageSlots)
	assert.LessOrEqual(t, s.OutageCalls, s.OutageLimit)
	assert.Less(t, s.Recovery, 3000)
}

func TestARedisThatIsNotItsOwnIsNotStopped(t *testing.T) {
	t.Parallel()
	server, err := redisserver.Start(t.Context())
	require.NoError(t, err)
	defer server.Close()
	events, s := told(t, "-redis", server.Addr)
	sharedInvariants(t, events, s)
	assert.Zero(t, s.Outage)
	assert.Contains(t, s.forPeople(), "not ours to stop")
}

func TestWithoutARedisItSaysHowToGetOne(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, problems bytes.Buffer
	assert.Equal(t, 1, start(t.Context(), nil, &out, &problems))
	assert.Contains(t, problems.String(), "apt-get install redis-server")
	assert.Contains(t, problems.String(), "-redis 127.0.0.1:6379")

	problems.Reset()
	assert.Equal(t, 1, start(t.Context(), []string{"-redis", "127.0.0.1:1"}, &out, &problems))
	assert.Contains(t, problems.String(), "no Redis at 127.0.0.1:1")
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-timeout", "1ms"}, {"-timeout", "1h"}, {"-timeout", "x"}, {"left over"}, {"-what"}} {
		var out, problems bytes.Buffer
		assert.Equal(t, 2, start(t.Context(), args, &out, &problems), args)
		assert.NotEmpty(t, problems.String(), args)
		assert.Empty(t, out.String(), args)
	}
	var out, problems bytes.Buffer
	assert.Zero(t, start(t.Context(), []string{"-h"}, &out, &problems))
}

// What a person reads.
func TestTheTimelineIsForPeople(t *testing.T) {
	for _, c := range []struct {
		e    event
		want string
	}{
		{event{What: "chapter", Text: "1. One"}, "\n1. One\n\n"},
		{event{At: 1.5, What: "note", Text: "Redis stops"}, "  1.50 s    Redis stops\n"},
		{event{At: 1.5, What: "circuit", Who: "A", Text: "opens"}, "  1.50 s    A: opens\n"},
		{event{At: 12, What: "sample", Sample: &sample{
			Inside: map[string]int{"A": 2, "C": 1}, Total: 3, Redis: -1, PerSecond: 40,
			Circuits: map[string]string{"A": "open", "B": "closed", "C": "open"},
		}}, " 12.00 s  A ##     B        C #       inside  3, by Redis  ?    40 calls/s   circuits open closed open\n"},
	} {
		assert.Equal(t, c.want, c.e.forPeople())
	}
}

func TestTheBanksBucketLeaksAtTheLimitsRate(t *testing.T) {
	b := newBank(0)
	for range burst {
		b.enter("A")
	}
	assert.InDelta(t, burst, b.mostBurst, 1)
	b.leaked = b.leaked.Add(-time.Second)
	b.enter("B")
	inside, total, came, _ := b.now()
	assert.Equal(t, map[string]int{"A": burst, "B": 1}, inside)
	assert.Equal(t, burst+1, total)
	assert.Equal(t, burst+1, came)
	assert.InDelta(t, 1, b.level, 1)
	b.leave("B")
	old := b.next()
	assert.Equal(t, map[string]int{"A": burst, "B": 1}, old.came)
	assert.Equal(t, burst, b.mostInside, "who is inside when a chapter begins is inside in it")
}
