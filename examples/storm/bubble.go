package main

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
)

// bubbles runs each job in a bubble of virtual time of its own, and returns when all of them have ended. Jobs share nothing.
type bubbles func(jobs []func())

// inProgram calls f with bubbles and ends the process with its status; it does not return. A bubble hangs on a *testing.T,
// and a program gets one from testing.Main, whose only test is f. That Main would parse os.Args and print PASS, so the test
// flags are parsed here, from nothing, and the test does not come back.
func inProgram(f func(bubbles) (status int)) {
	testing.Init()
	_ = flag.CommandLine.Parse(nil) // testing's own flags, all at their defaults; ours are in a set of their own
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "storm", F: func(t *testing.T) {
		os.Exit(f(bubblesOf(t)))
	}}}, nil, nil)
}

// bubblesOf starts as many jobs at once as there are processors: within a bubble hardly two goroutines ever have work at
// the same time.
func bubblesOf(t *testing.T) bubbles {
	return func(jobs []func()) {
		t.Run("bubbles", func(t *testing.T) { // ends when all that are parallel inside it have
			for i, job := range jobs {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(*testing.T) { job() })
				})
			}
		})
	}
}
