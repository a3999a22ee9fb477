package breaker

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

// together settles successes and failures of one generation, all admitted before, from 8 goroutines in random order.
func together(b *Breaker, successes, failures int) {
	outcomes := make([]leaf.Outcome, successes+failures)
	for i := range failures {
		outcomes[i] = failure
	}
	rand.Shuffle(len(outcomes), func(i, j int) { outcomes[i], outcomes[j] = outcomes[j], outcomes[i] })
	const goroutines = 8
	var wg sync.WaitGroup
	start := make(chan struct{})
	for g := range goroutines {
		var settles []func()
		for i := g; i < len(outcomes); i += goroutines {
			p, _ := b.Acquire(bg)
			settles = append(settles, func() { _ = p.Settle(bg, outcomes[i]) })
		}
		wg.Go(func() {
			<-start
			for _, settle := range settles {
				settle()
			}
		})
	}
	close(start)
	wg.Wait()
}

// The very last result, whichever it is, completes MinCalls and reaches the rate: it must trip, and only it.
func TestTheLastResultTripsExactlyOnce(t *testing.T) {
	for range 200 {
		for _, w := range []Window{Time(time.Hour), Count(1000), Count(1000).Within(time.Hour)} {
			changes := 0
			b := MustNew(Config{Window: w, MinCalls: 200, FailureRate: 0.1, Consecutive: Off, OpenFor: time.Hour,
				OnChange: func(c Change) {
					changes++
					if c.Reason != "failure rate 20/200" {
						t.Errorf("%+v", c)
					}
				}})
			together(b, 180, 20)
			require.Equal(t, Open, b.State())
			require.Equal(t, 1, changes)
		}
	}
}

func TestNothingIsLostOrCountedTwiceUnderLoad(t *testing.T) {
	for range 200 {
		for _, w := range []Window{Time(time.Hour), Count(1000), Count(1000).Within(time.Hour)} {
			b := MustNew(Config{Window: w, MinCalls: 10, FailureRate: Off, FailureCount: 31, Consecutive: Off, OpenFor: time.Hour})
			together(b, 400, 30)
			s := b.Snapshot()
			require.Equal(t, [3]int{430, 30, int(Closed)}, [3]int{s.Calls, s.Failures, int(s.State)})
			together(b, 50, 1)
			require.Equal(t, Open, b.State(), "the 31st failure")
		}
	}
}

// The clock runs on while results come in: what is counted in a bucket that ends must not get lost.
func TestNothingIsLostWhenBucketsEndUnderLoad(t *testing.T) {
	clk := &steppedClock{}
	b := MustNew(Config{Window: Time(10 * time.Second), FailureRate: Off, FailureCount: 1 << 30, Consecutive: Off, Clock: clk})
	const goroutines, each = 4, 5000
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				o := success
				if i%50 == 0 {
					o = failure
				}
				if g == 0 {
					clk.step(8 * time.Second / each) // less than the window in all
				}
				call(b, o)
			}
		})
	}
	wg.Wait()
	s := b.Snapshot()
	require.Equal(t, [2]int{goroutines * each, goroutines * each / 50}, [2]int{s.Calls, s.Failures})
}

// Old permits are settled while the next generation counts its own.
func TestAnEarlierGenerationNeverCountsUnderLoad(t *testing.T) {
	for range 300 {
		b := MustNew(off(Time(time.Hour)))
		var old []func()
		for range 200 {
			p, _ := b.Acquire(bg)
			old = append(old, func() { _ = p.Settle(bg, success) })
		}
		var wg sync.WaitGroup
		for g := range 2 {
			wg.Go(func() {
				for i := g; i < len(old); i += 2 {
					old[i]()
				}
			})
		}
		_ = b.Reset(bg)
		for range 100 {
			call(b, success)
		}
		wg.Wait()
		require.Equal(t, 100, b.Snapshot().Calls)
	}
}

func TestProbesNeverExceedTheirNumberUnderLoad(t *testing.T) {
	const goroutines, each, probes = 8, 2000, 3
	b := MustNew(Config{Window: Count(1), OpenFor: 1, Probes: probes, ProbeLease: time.Hour, ProbeSuccesses: 1 << 30})
	call(b, failure)
	var mu sync.Mutex
	out, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		out += n
		most = max(most, out)
	}
	outcomes := []leaf.Outcome{success, canceled, notRun}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				p, err := b.Acquire(bg)
				if err != nil {
					continue
				}
				count(1)
				count(-1)
				_ = p.Settle(bg, outcomes[(g+i)%len(outcomes)])
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, most, probes)
	require.Zero(t, b.Snapshot().Probes)
}

// Everything at once, for the race detector; what must hold at the end is that the breaker still works.
func TestEverythingAtOnce(t *testing.T) {
	cfg := Config{Window: Time(1000), MinCalls: 3, OpenFor: 100, Probes: 2, OnChange: func(Change) {}}
	b := MustNew(cfg)
	jobs := []func(i int){
		func(i int) { call(b, success) },
		func(i int) { call(b, failure) },
		func(i int) { _ = b.Snapshot(); _ = b.Inspect(); _ = b.State(); _ = b.Peek(bg) },
		func(i int) {
			switch i % 50 {
			case 0:
				_ = b.ForceOpen(bg)
			case 1:
				_ = b.ForceClosed(bg)
			case 2:
				_ = b.Auto(bg)
			case 3:
				_ = b.Reset(bg)
			case 4:
				c := cfg
				c.MinCalls = 1 + i%7
				if i%100 == 4 {
					c.Window = Count(10)
				}
				if err := b.Update(c); err != nil {
					t.Error(err)
				}
			}
		},
	}
	var wg sync.WaitGroup
	for _, job := range jobs {
		wg.Go(func() {
			for i := range 5000 {
				job(i)
			}
		})
	}
	wg.Wait()
	_ = b.Reset(bg)
	require.Equal(t, Snapshot{State: Closed, Reason: "reset"}, ageless(b.Snapshot()))
	require.NoError(t, b.Update(Config{}))
	call(b, success)
	require.Equal(t, 1, b.Snapshot().Calls)
}
