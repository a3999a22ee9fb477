package redisbreaker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// outcomes is one of each kind that counts.
var outcomes = []leaf.Outcome{
	{}, {Err: errDown}, {Took: time.Second}, {Err: errDown, Took: time.Second},
	{Verdict: leaf.CallerCancelled, Took: time.Second}, // slow alone
}

// The thresholds are looked at after every result, however the results fall into batches: a count window trips at the very result
// at which the local breaker does, for the same reason, and counts the same.
func TestCountWindowIsTheLocalBreakers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		n := 1 + rnd.IntN(12)
		cfg := breaker.Config{
			Window: breaker.Count(n), MinCalls: 1 + rnd.IntN(14), OpenFor: time.Second,
			FailureRate:  []float64{0, 0.29, 1, 0.75}[rnd.IntN(4)],
			FailureCount: []int{0, 1 + rnd.IntN(n)}[rnd.IntN(2)],
			Consecutive:  []int{breaker.Off, 2, 3}[rnd.IntN(3)],
		}
		if rnd.IntN(2) == 0 {
			cfg.SlowCall, cfg.SlowRate = time.Second, []float64{0.4, 1}[rnd.IntN(2)]
		}
		bad := rnd.IntN(len(outcomes)) // how likely anything but a success is
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			f := newFleet(t, cfg)
			shared := f.join()
			local := cfg
			local.Clock = clockwork.NewFakeClockAt(epoch)
			twin, err := breaker.New(local)
			require.NoError(t, err)
			for twin.State() == breaker.Closed && shared.Snapshot().Calls < n || rnd.IntN(20) > 0 {
				for range 1 + rnd.IntN(6) { // one batch
					o := outcomes[0]
					if rnd.IntN(5) < bad {
						o = outcomes[rnd.IntN(len(outcomes))]
					}
					if twin.State() == breaker.Closed {
						p, err := twin.Acquire(bg)
						require.NoError(t, err)
						require.NoError(t, p.Settle(bg, o))
					}
					quiet(shared, o)
				}
				shared.sync()
				want, got := twin.Snapshot(), shared.Snapshot()
				want.Wait, got.Wait, want.Name = 0, 0, got.Name
				for _, s := range []*breaker.Snapshot{&want, &got} { // two clocks
					s.Since, s.TripAgo = min(s.Since, 1), min(s.TripAgo, 1)
				}
				require.Equal(t, want, got)
				if twin.State() != breaker.Closed {
					break
				}
			}
		})
	}
}

// quiet puts a result into the outbox as report does, and leaves it there: the test decides where a batch ends.
func quiet(m *member, o leaf.Outcome) {
	is := m.policy.Load().judge.Of(o)
	m.Breaker.mu.Lock()
	busy := m.outbox.busy
	m.outbox.busy = true
	m.Breaker.mu.Unlock()
	m.report(m.view.Load().serial, is, o.Err)
	m.Breaker.mu.Lock()
	m.outbox.busy = busy
	m.Breaker.mu.Unlock()
}

// A time window against one that keeps every result with its tenth.
func TestTimeWindowSlidesInTenths(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	f := newFleet(t, breaker.Config{Window: breaker.Time(10 * time.Second), FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
	m := f.join()
	type result struct {
		tenth  int64
		failed bool
	}
	var all []result
	at := 0.0
	for range 400 {
		at += []float64{0, 0.1, 0.9, 1, 3, 9, 10, 11}[rnd.IntN(8)] * rnd.Float64()
		f.to(at)
		tenth := f.opts.Now().UnixMicro() / 1e6
		o := []leaf.Outcome{success, failure}[rnd.IntN(2)]
		all = append(all, result{tenth, o.Err != nil})
		m.run(1, o)
		calls, failures := 0, 0
		for _, r := range all {
			if r.tenth > tenth-10 {
				calls++
				if r.failed {
					failures++
				}
			}
		}
		m.counts(calls, failures)
	}
}

// "Counted for at most its time and for more than 9/10 of it", also where a count window is bounded.
func TestResultsLeaveWithTheirTenth(t *testing.T) {
	for _, w := range []breaker.Window{breaker.Time(10 * time.Second), breaker.Count(100).Within(10 * time.Second)} {
		f := newFleet(t, breaker.Config{Window: w, FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
		m := f.join()
		f.to(0.5)
		m.run(3, failure)
		f.to(9.499)
		m.run(1, success)
		m.counts(4, 3)
		f.to(10.5)
		m.run(1, success)
		m.counts(2, 0)
		f.to(30)
		m.run(1, success)
		m.counts(1, 0)
	}
}

func TestBoundedCountWindowKeepsTheLastOnes(t *testing.T) {
	f := newFleet(t, breaker.Config{
		Window: breaker.Count(4).Within(10 * time.Second), FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never,
	})
	m := f.join()
	for second := range 8 {
		f.to(float64(second))
		m.run(1, []leaf.Outcome{failure, success}[second/4])
	}
	m.counts(4, 0)
	f.to(14)
	m.run(1, failure)
	m.counts(4, 1) // those of 5, 6 and 7 are there, that of 4 is not
}

// 29 of 100 reaches 0.29: the same division, in Lua.
func TestRatesAreExact(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(100), MinCalls: 100, FailureRate: 0.29, Consecutive: breaker.Off})
	m := f.join()
	m.run(29, failure)
	m.run(70, success)
	m.is(breaker.Closed)
	m.run(1, success)
	m.is(breaker.Open)
	require.Equal(t, "failure rate 29/100", m.Snapshot().Reason)
}

// A shared breaker of the seeds: window-size 100, threshold 0.5, 20 calls, shared.
func TestSeedsSharedWindow(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(100), Consecutive: breaker.Off})
	a, b := f.join(), f.join()
	a.run(9, failure)
	b.run(10, success)
	b.is(breaker.Closed)
	a.run(1, failure)
	a.is(breaker.Open)
	require.Equal(t, "failure rate 10/20", a.Snapshot().Reason)
	b.is(breaker.Closed) // an idle one does not ask
	b.run(1, success)
	b.is(breaker.Open) // "a closed client learns at its next flush"
}

// A result of the largest window costs the server a string of 64 KiB, and stays exact.
func TestLargestCountWindow(t *testing.T) {
	const n = 1 << 16
	f := newFleet(t, breaker.Config{Window: breaker.Count(n), FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
	m := f.join()
	m.run(10, failure)
	for range n {
		quiet(m, success)
	}
	m.sync()
	m.counts(n, 0)
	m.run(1, failure)
	m.counts(n, 1)
}

func TestWindowsOfOtherSizesAreCountedBeside(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Count(10), FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
	old := f.join()
	old.run(3, failure)
	newer := f.join(func(c *breaker.Config, _ *Options) { c.Window = breaker.Count(20) })
	newer.run(1, failure)
	newer.counts(1, 1)
	old.run(1, success)
	old.counts(4, 3)
	require.NoError(t, old.Update(newer.Config()))
	old.run(1, success)
	old.counts(2, 1)
}

// Windows of other sizes leave nothing behind for longer than their time and a minute.
func TestFieldsOfWindowsThatNobodyUsesGo(t *testing.T) {
	f := newFleet(t, breaker.Config{Window: breaker.Time(10 * time.Second), FailureRate: breaker.Off, Consecutive: breaker.Off, SlowCall: never})
	windows := func() (n int) {
		fields, err := f.client.HKeys(bg, f.key()).Result()
		require.NoError(t, err)
		for _, name := range fields {
			if strings.Contains(name, "@") {
				n++
			}
		}
		return n
	}
	m := f.join()
	for i := range 10 {
		f.to(float64(i))
		m.run(1, success)
		cfg := m.Config()
		cfg.Window = breaker.Time(time.Duration(10+i) * time.Second)
		require.NoError(t, m.Update(cfg))
		f.to(float64(i) + 0.5)
		m.run(1, success)
		cfg.Window = breaker.Count(50 + i).Within(time.Duration(20+i) * time.Second)
		require.NoError(t, m.Update(cfg))
		m.run(1, success)
	}
	require.Greater(t, windows(), 20)
	cfg := m.Config()
	cfg.Window = breaker.Time(10 * time.Second)
	require.NoError(t, m.Update(cfg))
	f.to(100)
	m.run(1, failure)
	require.Equal(t, 1, windows())
	m.counts(1, 1)

	f.to(105)
	m.run(1, failure)
	f.to(109)
	cfg.Window = breaker.Time(20 * time.Second)
	require.NoError(t, m.Update(cfg))
	m.run(1, failure)
	cfg.Window = breaker.Time(1000 * time.Second)
	require.NoError(t, m.Update(cfg))
	f.to(165) // a minute later; nothing of a window that is still in time goes
	m.run(1, failure)
	cfg.Window = breaker.Time(10 * time.Second)
	require.NoError(t, m.Update(cfg))
	f.to(172)
	m.run(1, failure)
	require.Equal(t, 2, windows(), "this one's and the long one's")
}
