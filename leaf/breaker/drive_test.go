package breaker

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// happened is an outcome beside what it has to mean.
type happened struct {
	leaf.Outcome
	failed, slow, cancelled, neutral bool
}

const modelSlow = 100 * time.Millisecond

var modelOutcomes = []happened{
	{Outcome: success}, {Outcome: success}, {Outcome: success},
	{Outcome: failure, failed: true}, {Outcome: failure, failed: true},
	{Outcome: leaf.Outcome{Took: modelSlow}, slow: true},
	{Outcome: leaf.Outcome{Took: modelSlow, Err: errDown}, slow: true, failed: true},
	{Outcome: leaf.Outcome{Verdict: leaf.TimedOut, Err: errDown}, failed: true},
	{Outcome: leaf.Outcome{Verdict: leaf.Panicked}, failed: true},
	{Outcome: canceled, neutral: true},
	{Outcome: leaf.Outcome{Verdict: leaf.CallerCancelled, Took: modelSlow}, cancelled: true, slow: true},
	{Outcome: notRun, neutral: true},
	{Outcome: leaf.Outcome{Verdict: leaf.Ignored, Err: errDown}, neutral: true},
	{Outcome: expired(modelSlow-1, time.Second), neutral: true},
	{Outcome: expired(time.Second, time.Second), failed: true, slow: true},
}

var modelConfigs = []Config{
	{},
	{MinCalls: 5, FailureRate: 0.29, OpenFor: time.Second, OpenGrowth: 2, MaxOpenFor: 5 * time.Second},
	{Window: Count(10), FailureRate: 0.6, SlowCall: modelSlow, SlowRate: 0.3, Probes: 3, ProbeSuccesses: 2},
	{Window: Count(3).Within(2 * time.Second), MinCalls: 3, OpenJitter: true, ProbeLease: time.Second, Probes: 2},
	{Window: Time(105), MinCalls: 4, OpenFor: 40, OpenGrowth: 3, OpenJitter: true, ProbeLease: 7, Consecutive: 2},
	{Window: Time(time.Second), FailureRate: Off, FailureCount: 4, Consecutive: Off, ProbeLease: NoLease, ProbeSuccesses: 3},
	{Window: Count(20), MinCalls: 20, FailureRate: 0.95, Consecutive: Off, SlowCall: modelSlow, SlowRate: 1},
	{MinCalls: 6, FailureRate: 0.9, Consecutive: 4, SlowCall: modelSlow, SlowRate: 0.4, OpenFor: time.Second},
	{Window: Count(1), OpenFor: 1, ProbeSuccesses: 4, Probes: 10},
}

// TestBreakerIsTheModel drives both with the same random operations and compares everything that can be seen.
func TestBreakerIsTheModel(t *testing.T) {
	seed := *seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	const run = 2000 // operations on one breaker
	for done := 0; done < *ops; done += run {
		drive(t, rnd, run)
		if t.Failed() {
			t.FailNow()
		}
	}
}

type pair struct {
	*rig
	m    *model
	rnd  *rand.Rand
	out  []*ticket
	told int
}

func drive(t *testing.T, rnd *rand.Rand, n int) {
	cfg := modelConfigs[rnd.IntN(len(modelConfigs))]
	cfg.Rand = func() float64 { return 0.25 }
	p := &pair{rig: newRig(t, cfg), m: &model{}, rnd: rnd}
	p.m.cfg = p.Config()
	// A favourite outcome makes long runs of one kind, which reach what a fair mixture never does.
	favourite := modelOutcomes[rnd.IntN(len(modelOutcomes))]
	for i := range n {
		if i%100 == 0 {
			favourite = modelOutcomes[rnd.IntN(len(modelOutcomes))]
		}
		p.operate(favourite)
		p.compare()
		if t.Failed() {
			t.Logf("operation %d of %+v", i, p.m.cfg)
			return
		}
	}
}

func (p *pair) now() int64 { return p.clock.at.Load() }

func (p *pair) operate(favourite happened) {
	switch n := p.rnd.IntN(1000); {
	case n < 400:
		p.acquire()
	case n < 800 && len(p.out) > 0:
		i := p.rnd.IntN(len(p.out))
		if p.rnd.IntN(2) == 0 {
			i = len(p.out) - 1
		}
		t := p.out[i]
		p.out = append(p.out[:i], p.out[i+1:]...)
		o := favourite
		if p.rnd.IntN(4) == 0 {
			o = modelOutcomes[p.rnd.IntN(len(modelOutcomes))]
		}
		t.settle(o.Outcome)
		p.m.settle(p.now(), t, o)
	case n < 970:
		p.pass()
	case n < 975:
		p.clock.step(time.Duration(p.rnd.IntN(3)-1) * 26 * 365 * 24 * time.Hour)
	case n < 980:
		p.clock.step(-time.Duration(p.rnd.IntN(200)))
	case n < 990:
		p.control()
	default:
		p.update()
	}
}

func (p *pair) acquire() {
	now := p.now()
	refused, state, wait := p.m.peek(now)
	peeked := p.Peek(bg)
	permit, err := p.Acquire(bg)
	require.Equal(p.t, peeked, err, "Peek is what Acquire does")
	if refused {
		var e *OpenError
		if !errors.As(err, &e) || e.State != state || int64(e.Wait) != wait {
			p.t.Errorf("%+v, want state %v and wait %d", err, state, wait)
		}
		return
	}
	if err != nil {
		p.t.Errorf("refused: %v", err)
		return
	}
	t := p.m.acquire(now)
	t.settle = func(o leaf.Outcome) { _ = permit.Settle(bg, o) }
	p.out = append(p.out, t)
	if len(p.out) > 50 {
		p.out = p.out[1:] // a caller that died: its permit is never settled
	}
}

// pass lets time go by, often exactly to where something ends.
func (p *pair) pass() {
	m := p.m
	_, slot := m.slots(p.now())
	steps := []int64{1, 10, 11, int64(50 * time.Millisecond), int64(m.cfg.Window.span) / 10, int64(m.cfg.Window.span),
		m.openLeft(p.now()), m.openLeft(p.now()) - 1, slot, slot - 1, int64(m.cfg.Window.within), int64(m.cfg.Window.within) / 2}
	p.clock.step(time.Duration(max(0, steps[p.rnd.IntN(len(steps))])))
}

func (p *pair) control() {
	m := p.m
	switch p.rnd.IntN(4) {
	case 0:
		_ = p.ForceOpen(bg)
		if m.state != Open || !m.forced {
			m.move(Open, "forced")
		}
		m.forced, m.reopening = true, 0
	case 1:
		_ = p.ForceClosed(bg)
		if m.state != Closed {
			m.move(Closed, "forced")
		}
		m.forced = true
	case 2:
		_ = p.Auto(bg)
		if m.forced {
			m.move(Closed, "automatic again")
		}
		m.forced = false
	case 3:
		_ = p.Reset(bg)
		m.move(Closed, "reset")
		m.forced = false
	}
}

func (p *pair) update() {
	cfg := modelConfigs[p.rnd.IntN(len(modelConfigs))]
	if p.rnd.IntN(2) == 0 {
		cfg.Window = p.m.cfg.Window // the history stays
		if cfg.FailureCount = 0; cfg.FailureRate == Off {
			return // no rule would be left
		}
	}
	if cfg.Window.kind == countWindow && cfg.FailureRate == Off {
		return
	}
	old := p.m.cfg
	cfg.Clock, cfg.Rand, cfg.OnChange = old.Clock, old.Rand, old.OnChange
	require.NoError(p.t, p.Update(cfg))
	p.m.cfg = p.Config()
	if p.m.cfg.Window != old.Window {
		p.m.results = nil
	}
}

// compare looks at everything. It must change nothing, so that it is itself under test.
func (p *pair) compare() {
	now, m := p.now(), p.m
	calls, failures, slow := 0, 0, 0
	if m.state == Closed {
		calls, failures, slow = m.totals(now)
	}
	s := p.Snapshot()
	want := Snapshot{State: m.state, Forced: m.forced, Calls: calls, Failures: failures, Slow: slow,
		ProbeSuccesses: m.successes, Reason: s.Reason, Since: s.Since, Trip: s.Trip, TripAgo: s.TripAgo}
	if calls > 0 {
		want.FailureRate = float64(failures) / float64(calls)
	}
	want.Probes, _ = m.slots(now)
	if m.state == Open && !m.forced {
		want.Wait = time.Duration(m.openLeft(now))
		if want.Wait == 0 {
			want.State = HalfOpen
		}
	}
	if s != want || p.State() != want.State {
		p.t.Errorf("at %d: %+v\nwant %+v", now, s, want)
	}
	if len(p.rig.told) != len(m.changes) {
		p.t.Errorf("told %d changes, want %d", len(p.rig.told), len(m.changes))
		return
	}
	for ; p.told < len(m.changes); p.told++ {
		got, want := p.rig.told[p.told], m.changes[p.told]
		if want.Reason == "" {
			want.Reason = got.Reason
		}
		if got != want || got.Reason == "" || got.Reason != s.Reason {
			p.t.Errorf("told %+v, want %+v", got, want)
		}
	}
}
