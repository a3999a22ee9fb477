package main

import (
	"errors"
	"fmt"
	"time"
)

// group is one piece of work that several contenders do.
type group struct {
	name   string
	fails  int   // of fn, before it succeeds
	asks   bool  // fn asks its context for Done
	trip   bool  // before it is measured, calls fail until the circuit is open, or the tokens are spent
	refuse bool  // fn never runs
	widths []int // how many goroutines share one instance
	pace   pace
	by     []contender
}

// pace is how long a group's rounds are, and how many.
type pace uint8

const (
	usual   pace = iota
	garbage      // 5 times as long: each holds its share of the collector's work
	quiet        // an eighth, and 300 times as many: a difference of few nanoseconds shows in rounds that nothing else touched
)

// paced are the options for g.
func (o options) paced(g group) options {
	switch g.pace {
	case garbage:
		o.each *= 5
	case quiet:
		o.each, o.rounds = o.each/8, o.rounds*300
	}
	return o
}

// contender does a group's work in one way.
type contender struct {
	name  string
	setup string // how it is configured, for the table of set-ups
	begin func() work
}

// work is a contender's instance.
type work struct {
	run     func(n int, j *job) // n calls in a row on this goroutine; several may run at once
	end     func()              // gives back what begin took; nil = nothing
	refusal error               // what a refused call's error is
}

var (
	alone = []int{1}
	many  = []int{1, 2, 8}
)

const (
	tripping = 300 // calls that fail, which opens every breaker here
	patience = time.Hour
)

// start makes an instance that is ready to be measured.
func (g group) start(c contender) work {
	w := c.begin()
	if w.end == nil {
		w.end = func() {}
	}
	if g.trip {
		w.run(tripping, &job{fails: tripping * 10})
	}
	return w
}

func (g group) job() *job { return &job{fails: g.fails, asks: g.asks} }

// check says whether n calls did what the group's calls do: every contender has to do the work, in every round.
func (g group) check(w work, j *job, n int) error {
	want := job{runs: n * (g.fails + 1), ok: n}
	if g.refuse {
		want = job{failed: n}
	}
	if j.runs != want.runs || j.ok != want.ok || j.failed != want.failed {
		return fmt.Errorf("%d calls ran fn %d times, %d succeeded and %d did not (%v); want %d, %d and %d",
			n, j.runs, j.ok, j.failed, j.err, want.runs, want.ok, want.failed)
	}
	if g.asks && j.live != j.runs {
		return fmt.Errorf("fn had a context that can end in %d of %d runs", j.live, j.runs)
	}
	if g.refuse && !errors.Is(j.err, w.refusal) {
		return fmt.Errorf("refused with %v, want %v", j.err, w.refusal)
	}
	return nil
}
