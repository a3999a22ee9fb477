package soak

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

var (
	duration = flag.Duration("d", 2*time.Second, "how long to go on making worlds")
	seed     = flag.Uint64("seed", 0, "of the first world; 0 = another one each time")
	worlds   = flag.Int("n", 0, "how many worlds; 0 = as many as -d allows")
	// What a world is like depends on its seed alone; how its goroutines interleave does not, so that a failure may need the same
	// world a few times to come again.
	again = flag.Bool("same", false, "every world has the first one's seed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

func TestSoak(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano()) % 1e12
	}
	end := time.Now().Add(*duration)
	count := tally{}
	for i := 0; !t.Failed() && (*worlds > 0 && i < *worlds || *worlds == 0 && time.Now().Before(end)); i++ {
		s := first + uint64(i)
		if *again {
			s = first
		}
		count.add(soakOne(t, s))
	}
	t.Logf("from seed %d: %v", first, count)
}

// soakOne is one world, in the time that its seed says.
func soakOne(t *testing.T, seed uint64) tally {
	t.Helper()
	w := newWorld(seed)
	defer func() {
		if v := recover(); v != nil { // a bubble in which all hang panics
			t.Logf("%v: panic", w)
			panic(v)
		}
	}()
	switch w.kind {
	case inBubble:
		synctest.Test(t, func(t *testing.T) {
			w.build()
			w.live()
			w.recover()
		})
	case inReal:
		w.build()
		w.live()
		w.recover()
		if err := goleak.Find(); err != nil {
			w.fail("%v", err)
		}
	case inBoth:
		w.build()
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				w.live()
				w.recover()
			})
			w.live()
			w.recover()
		}
	}
	if w.reg != nil {
		_ = w.reg.Close()
	}
	for _, f := range w.faults() {
		t.Errorf("%v: %s\nagain: go test -run TestSoak -timeout 0 ./examples/soak -args -seed %d -n 1000 -same", w, f, seed)
	}
	return w.count()
}

// tally is how much has happened.
type tally struct{ worlds, calls, runs, rejected, failed, panicked int }

func (a *tally) add(b tally) {
	a.worlds += b.worlds
	a.calls += b.calls
	a.runs += b.runs
	a.rejected += b.rejected
	a.failed += b.failed
	a.panicked += b.panicked
}

func (a tally) String() string {
	return fmt.Sprintf("%d worlds, %d calls, %d runs of callbacks, %d refusals, %d other failures, %d panics and Goexits",
		a.worlds, a.calls, a.runs, a.rejected, a.failed, a.panicked)
}
