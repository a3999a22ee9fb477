package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The transition table: from each state, each event at an instant, the next state. Closed is one failure before its
// threshold, open began at 100 for 50, half-open has one probe out since 150 under a lease of 50.
func TestTransitions(t *testing.T) {
	type row struct {
		from   State
		forced bool
		event  event
		mine   bool // settle: by a permit of this generation
		at     int64
		to     State
		then   bool // forced afterwards
		why    string
	}
	ok, bad, nothing := event{kind: settle, is: succeeded}, event{kind: settle, is: failed}, event{kind: settle}
	lasted := event{kind: settle, is: slow}
	for _, c := range []row{
		{Closed, false, event{kind: admit}, false, 0, Closed, false, ""},
		{Closed, false, ok, true, 0, Closed, false, ""},
		{Closed, false, bad, true, 0, Open, false, "failure rate 2/2"},
		{Closed, false, bad, false, 0, Closed, false, ""},
		{Closed, false, nothing, true, 0, Closed, false, ""},
		{Closed, false, event{kind: forceOpen}, false, 0, Open, true, "forced"},
		{Closed, false, event{kind: forceClosed}, false, 0, Closed, true, "forced"},
		{Closed, false, event{kind: auto}, false, 0, Closed, false, ""},
		{Closed, false, event{kind: reset}, false, 0, Closed, false, "reset"},
		{Closed, true, bad, true, 0, Closed, true, "forced"},
		{Closed, true, event{kind: forceOpen}, false, 0, Open, true, "forced"},
		{Closed, true, event{kind: auto}, false, 0, Closed, false, "automatic again"},
		{Closed, true, event{kind: reset}, false, 0, Closed, false, "reset"},

		{Open, false, event{kind: admit}, false, 149, Open, false, "failure rate 2/2"},
		{Open, false, event{kind: admit}, false, 150, HalfOpen, false, "open time is over"},
		{Open, false, event{kind: admit}, false, 99, HalfOpen, false, "clock went back"},
		{Open, false, bad, false, 149, Open, false, "failure rate 2/2"},
		{Open, false, ok, false, 151, Open, false, "failure rate 2/2"},
		{Open, false, event{kind: forceOpen}, false, 120, Open, true, "forced"},
		{Open, false, event{kind: forceClosed}, false, 120, Closed, true, "forced"},
		{Open, false, event{kind: auto}, false, 120, Open, false, "failure rate 2/2"},
		{Open, false, event{kind: reset}, false, 120, Closed, false, "reset"},
		{Open, true, event{kind: admit}, false, 1e9, Open, true, "forced"},
		{Open, true, ok, false, 1e9, Open, true, "forced"},
		{Open, true, event{kind: forceOpen}, false, 0, Open, true, "forced"},
		{Open, true, event{kind: forceClosed}, false, 0, Closed, true, "forced"},
		{Open, true, event{kind: auto}, false, 0, Closed, false, "automatic again"},

		{HalfOpen, false, event{kind: admit}, false, 199, HalfOpen, false, "open time is over"},
		{HalfOpen, false, ok, true, 160, Closed, false, "1 probe succeeded"},
		{HalfOpen, false, ok, true, 1e9, Closed, false, "1 probe succeeded"},
		{HalfOpen, false, bad, true, 160, Open, false, "probe failed"},
		{HalfOpen, false, nothing, true, 160, HalfOpen, false, "open time is over"},
		{HalfOpen, false, lasted, true, 160, HalfOpen, false, "open time is over"},
		{HalfOpen, false, ok, false, 160, HalfOpen, false, "open time is over"},
		{HalfOpen, false, bad, false, 160, HalfOpen, false, "open time is over"},
		{HalfOpen, false, event{kind: forceOpen}, false, 160, Open, true, "forced"},
		{HalfOpen, false, event{kind: forceClosed}, false, 160, Closed, true, "forced"},
		{HalfOpen, false, event{kind: auto}, false, 160, HalfOpen, false, "open time is over"},
		{HalfOpen, false, event{kind: reset}, false, 160, Closed, false, "reset"},
	} {
		p, err := newPolicy(Config{Window: Count(2), FailureRate: 1, OpenFor: 50})
		require.NoError(t, err)
		m := newMachine(p)
		do := func(e event, at int64) answer { return m.apply(p, e, &moment{at: at, known: true}) }
		old := do(event{kind: admit}, 100).token
		do(event{kind: settle, token: old, is: failed}, 100)
		mine := old
		if c.from != Closed && !c.forced {
			do(event{kind: settle, token: old, is: failed}, 100)
		}
		if c.from == HalfOpen {
			mine = do(event{kind: admit}, 150).token
		}
		switch {
		case c.forced && c.from == Open:
			do(event{kind: forceOpen}, 100)
		case c.forced:
			do(event{kind: forceClosed}, 100)
		}
		require.Equal(t, c.from, m.state)
		e := c.event
		e.token = token(tokenSerial(old)+1<<40, c.from) // of no generation that was ever
		if c.from == HalfOpen {
			e.token = old
		}
		if c.mine {
			e.token = mine
		}
		seq := m.seq
		a := do(e, c.at)
		require.Equal(t, []any{c.to, c.then, c.why}, []any{m.state, m.forced, m.reason}, "%+v", c)
		require.Equal(t, c.to != c.from, a.changed)
		require.Equal(t, a.changed, m.seq == seq+1)
		if a.changed {
			require.Equal(t, Change{Seq: m.seq, From: c.from, To: c.to, Reason: c.why}, m.change)
		}
	}
}

func TestTokensNeverRepeat(t *testing.T) {
	p, err := newPolicy(Config{Window: Count(1), OpenFor: 1, Probes: 4, ProbeSuccesses: 2})
	require.NoError(t, err)
	m := newMachine(p)
	generations, seen := map[uint64]bool{}, map[uint64]bool{}
	at := int64(0)
	for range 1000 {
		closed := m.apply(p, event{kind: admit}, &moment{at: at, known: true}).token
		require.False(t, generations[closed])
		generations[closed] = true
		m.apply(p, event{kind: settle, token: closed, is: failed}, &moment{at: at, known: true})
		at += int64(time.Second)
		var probes []uint64
		for range 4 {
			probe := m.apply(p, event{kind: admit}, &moment{at: at, known: true}).token
			require.False(t, seen[probe] || generations[probe])
			seen[probe] = true
			probes = append(probes, probe)
		}
		for _, probe := range probes {
			m.apply(p, event{kind: settle, token: probe, is: succeeded}, &moment{at: at, known: true})
		}
		require.Equal(t, Closed, m.state)
	}
}
