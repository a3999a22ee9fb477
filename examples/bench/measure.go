package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// cell is what was measured of one contender at one width.
type cell struct {
	group, name string
	width       int
	rounds      []float64 // nanoseconds per call, one per round; round i of each contender of a group is of the same minute
	allocs      float64   // per call
	bytes       float64   // allocated per call
}

// median nanoseconds per call.
func (c *cell) median() float64 { return median(c.rounds) }

// measure measures a group at one width: the contenders take turns, so that whatever else the machine does hits all of them.
func (o options) measure(g group, width int) ([]*cell, error) {
	o = o.paced(g)
	cells, works, sizes := make([]*cell, len(g.by)), make([]work, len(g.by)), make([]int, len(g.by))
	for i, c := range g.by {
		cells[i], works[i] = &cell{group: g.name, name: c.name, width: width}, g.start(c)
		defer works[i].end()
		var err error
		if sizes[i], err = o.size(g, works[i], width); err == nil {
			cells[i].allocs, cells[i].bytes, err = allocations(g, works[i], o.calls)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", g.name, c.name, err)
		}
	}
	// Collecting garbage is part of the price of whoever makes it: who allocates most, most often finds the heap full.
	runtime.GC()
	for round := range o.rounds {
		for k := range g.by {
			i := (k + round) % len(g.by) // nobody is always the first after the others' garbage
			took, err := timed(g, works[i], sizes[i], width)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", g.name, g.by[i].name, err)
			}
			cells[i].rounds = append(cells[i].rounds, float64(took)/float64(sizes[i]*width))
		}
	}
	return cells, nil
}

// size is how many calls each goroutine makes in a round that takes about o.each. The shortest of three tries counts: one that
// was interrupted would make rounds of a few cold calls.
func (o options) size(g group, w work, width int) (int, error) {
	each := o.each
	if width > 1 {
		each *= 3 // it takes a moment until all of them run
	}
	for n := 64; ; n *= 2 {
		shortest := time.Duration(math.MaxInt64)
		for range 3 {
			took, err := timed(g, w, n, width)
			if err != nil {
				return 0, err
			}
			shortest = min(shortest, took)
		}
		if shortest >= each/4 {
			return max(1, int(float64(n)*float64(each)/float64(shortest))), nil
		}
	}
}

// timed is how long width goroutines take for n calls each on one instance.
func timed(g group, w work, n, width int) (time.Duration, error) {
	jobs := make([]*job, width)
	for i := range jobs {
		jobs[i] = g.job()
	}
	var took time.Duration
	if width == 1 {
		began := time.Now()
		w.run(n, jobs[0])
		took = time.Since(began)
	} else {
		var ready, done sync.WaitGroup
		gate := make(chan struct{})
		for _, j := range jobs {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-gate
				w.run(n, j)
			})
		}
		ready.Wait()
		began := time.Now()
		close(gate)
		done.Wait()
		took = time.Since(began)
	}
	for _, j := range jobs {
		if err := g.check(w, j, n); err != nil {
			return 0, err
		}
	}
	return max(1, took), nil
}

// allocations per call: what twice as many calls allocate more, so that what a run costs once does not count. The least of a
// few tries counts, since another goroutine's allocations could only add.
func allocations(g group, w work, n int) (count, bytes float64, err error) {
	count, bytes = math.Inf(1), math.Inf(1)
	for range 3 {
		once, onceBytes, err := allocated(g, w, n)
		if err != nil {
			return 0, 0, err
		}
		twice, twiceBytes, err := allocated(g, w, 2*n)
		if err != nil {
			return 0, 0, err
		}
		count, bytes = min(count, (twice-once)/float64(n)), min(bytes, (twiceBytes-onceBytes)/float64(n))
	}
	return max(0, count), max(0, bytes), nil
}

func allocated(g group, w work, n int) (count, bytes float64, err error) {
	j := g.job()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w.run(n, j)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc), g.check(w, j, n)
}

func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	switch n := len(sorted); {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}

// difference is how much more ours takes in the quietest rounds and as the median of the rounds, in nanoseconds per call. What
// else runs, and a processor that is slowed down, only add: unlike a ratio, a difference does not cancel them.
func difference(ours, theirs *cell) (quietest, typical float64) {
	pairs := make([]float64, min(len(ours.rounds), len(theirs.rounds)))
	for i := range pairs {
		pairs[i] = ours.rounds[i] - theirs.rounds[i]
	}
	return slices.Min(ours.rounds) - slices.Min(theirs.rounds), median(pairs)
}

// ratio is the median of the rounds' ratios: both figures of a pair are of the same few milliseconds, so that load which
// comes and goes while it is measured touches both.
func ratio(ours, theirs *cell) float64 {
	pairs := make([]float64, min(len(ours.rounds), len(theirs.rounds)))
	for i := range pairs {
		pairs[i] = ours.rounds[i] / theirs.rounds[i]
	}
	return median(pairs)
}
