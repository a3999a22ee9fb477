package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/pipeline/registry"
	"github.com/jonboulle/clockwork"
)

type worldKind uint8

const (
	inBubble worldKind = iota
	inReal
	inBoth // a guard of a package-level variable sees both
)

// world is what one seed makes.
type world struct {
	seed uint64
	kind worldKind
	rnd  *rand.Rand // while it is built; who lives in it has its own
	unit time.Duration

	clock  *jumper // nil = real time
	span   span
	outer  *stage
	inner  *stage // pipelines that callbacks of the outer ones call
	reg    *registry.Registry
	phase  int
	inside atomic.Int64 // callbacks, also those that their calls have given up on
	counts struct{ calls, runs, rejected, failed, panicked atomic.Int64 }

	mu  sync.Mutex
	bad []string
}

func newWorld(seed uint64) *world {
	w := &world{seed: seed, rnd: rand.New(rand.NewPCG(seed, 0))}
	switch n := w.rnd.IntN(100); {
	case n < 85:
		w.kind, w.unit = inBubble, 10*time.Millisecond
	case n < 95:
		w.kind, w.unit = inReal, 100*time.Microsecond
	default:
		w.kind, w.unit = inBoth, 100*time.Microsecond
	}
	return w
}

func (w *world) String() string {
	kind := [...]string{"in a bubble", "in real time", "in both times"}[w.kind]
	if w.clock != nil {
		kind += ", on a clock that jumps"
	}
	if w.reg != nil {
		kind += ", from a configuration"
	}
	text := fmt.Sprintf("seed %d, %s", w.seed, kind)
	for _, s := range []*stage{w.inner, w.outer} {
		if s != nil {
			for _, t := range s.targets {
				text += fmt.Sprintf("\n  %v", t)
			}
		}
	}
	return text + "\n"
}

// fail notes what must not happen; the first few are enough.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.bad) < 5 {
		w.bad = append(w.bad, fmt.Sprintf(format, args...))
	}
}

func (w *world) faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bad
}

func (w *world) count() tally {
	c := &w.counts
	return tally{1, int(c.calls.Load()), int(c.runs.Load()), int(c.rejected.Load()), int(c.failed.Load()), int(c.panicked.Load())}
}

// timer is the clock of a Config.
func (w *world) timer() clockwork.Clock {
	if w.clock == nil {
		return nil
	}
	return w.clock
}

// exact says that instants can be told to the nanosecond.
func (w *world) exact() bool { return w.kind == inBubble && w.clock == nil }

// build makes the guards and pipelines. It runs inside the bubble, where there is one.
func (w *world) build() {
	if w.kind == inBubble && w.rnd.IntN(4) == 0 {
		w.clock = newJumper()
	}
	w.inner = newStage(w, "inner", 2)
	if w.kind != inBoth && w.rnd.IntN(5) == 0 { // a registry's goroutines belong to the time that it was made in
		w.outer = newConfigured(w)
	} else {
		w.outer = newStage(w, "outer", 1+w.rnd.IntN(3))
	}
}

// live lets callers use the pipelines, until all have come back.
func (w *world) live() {
	w.phase++
	w.span.begin()
	for _, s := range []*stage{w.inner, w.outer} {
		s.begin()
	}
	callers, calls := 1+w.rnd.IntN(8), 1+w.rnd.IntN(12)
	if w.kind == inReal {
		callers, calls = 2+w.rnd.IntN(14), 20
	}
	stop := make(chan struct{})
	var fate, all sync.WaitGroup
	fate.Go(func() { w.meddle(rand.New(rand.NewPCG(w.seed, uint64(w.phase)<<32|1)), stop) })
	for i := range callers {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(w.seed, uint64(w.phase)<<32|uint64(i+2)))
			for range calls {
				pause(rnd, 4*w.unit)
				var one sync.WaitGroup // runtime.Goexit of a callback ends its caller
				one.Go(func() { w.outer.call(context.Background(), rnd) })
				one.Wait()
			}
		})
	}
	all.Wait()
	close(stop)
	fate.Wait()
	w.settle()
}

// pause waits up to d, on the bubble's or the real time.
func pause(rnd *rand.Rand, d time.Duration) {
	if d = time.Duration(rnd.Int64N(int64(d) + 1)); d > 0 && rnd.IntN(3) > 0 {
		<-time.After(d)
	}
}
