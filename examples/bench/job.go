package main

import (
	"context"
	"errors"
)

// errDown is what a call that fails returns.
var errDown = errors.New("down")

// job is what the calls of one goroutine do, and how they went. Every contender's callback is the same [job.fn], in a closure
// that is made anew for each call, as a caller's is.
type job struct {
	fails int  // how often fn fails before it succeeds
	asks  bool // fn asks its context for Done

	runs   int   // of fn
	live   int   // runs whose context can end
	tries  int   // runs of fn within this call
	ok     int   // calls that returned what fn returned, after as many tries as it takes
	failed int   // the others
	err    error // of the last that failed
	_      [64]byte
}

// fn is the callback. It returns how often it was tried, so that no result is a constant.
func (j *job) fn(ctx context.Context) (int, error) {
	j.runs++
	if j.asks {
		done := ctx.Done()
		select {
		case <-done:
			return 0, context.Cause(ctx)
		default:
		}
		if done != nil {
			j.live++
		}
	}
	if j.tries++; j.tries <= j.fails {
		return 0, errDown
	}
	return j.tries, nil
}

// ended is told what each call returned.
func (j *job) ended(v int, err error) {
	if err == nil && v == j.fails+1 {
		j.ok++
	} else {
		j.failed++
		j.err = err
	}
	j.tries = 0
}
