package guardtest

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/leaf"
)

// Config says how the guards under test are made and what they are. The functions are called many times, each time for a
// guard that shares nothing with the others (on a store: under a name of its own); t.Cleanup is the place to end what one
// started.
type Config struct {
	// New makes a fresh guard that admits its next call, and refuses without waiting once it is full; required.
	New func(t testing.TB) leaf.Guard
	// Capacity is how many calls a fresh guard admits before it refuses, if none is settled: a bulkhead's slots, a limiter's
	// burst, a half-open breaker's probes. 0 = it admits any number. What refills with time must not within the test: make it
	// slow, or stop its clock.
	Capacity int
	// Slots says that every settled call gives its place back, whatever the outcome. False = only NotRun surely does.
	// It needs a Capacity.
	Slots bool
	// Waiting makes a fresh guard of the same Capacity, which it needs, whose Acquire waits for a place longer than the test
	// lasts and that has room for Capacity+8 waiters; nil = it never waits.
	Waiting func(t testing.TB) leaf.Guard
	// Refusing makes a guard that refuses every call while the test lasts (an open breaker); nil = New's, used up to Capacity.
	Refusing func(t testing.TB) leaf.Guard
	// Lag is how long a settled place may take to be free again; 0 = it is free when Settle has returned; else positive.
	Lag time.Duration
	// Patience is how long a call may take that has nothing to wait for; 0 = 10 s; else positive.
	Patience time.Duration
	// Rounds is how often each goroutine of a stress goes round; 0 = 200; else from 1.
	Rounds int
}

func (c Config) withDefaults() Config {
	c.New = made("New", c.New)
	c.Waiting = made("Waiting", c.Waiting)
	c.Refusing = made("Refusing", c.Refusing)
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Rounds == 0 {
		c.Rounds = 200
	}
	return c
}

// made is make that ends the test where it makes nothing, before a nil guard is asked.
func made(name string, make func(testing.TB) leaf.Guard) func(testing.TB) leaf.Guard {
	if make == nil {
		return nil
	}
	return func(t testing.TB) leaf.Guard {
		t.Helper()
		g := make(t)
		if check.Nil(g) {
			t.Fatalf("guardtest: %s returned %s: want a guard", name, check.Type(g))
		}
		return g
	}
}

func (c Config) validate() error {
	var l check.List
	if c.New == nil {
		l.Bad("guardtest", "New", "nil", "a function that makes a fresh guard")
	}
	if c.Capacity < 0 {
		l.Bad("guardtest", "Capacity", c.Capacity, "0 (any number) or more")
	}
	if c.Slots && c.Capacity == 0 {
		l.Bad("guardtest", "Slots", c.Slots, "a Capacity beside it")
	}
	if c.Waiting != nil && c.Capacity == 0 {
		l.Bad("guardtest", "Waiting", "set", "a Capacity beside it")
	}
	if c.Lag < 0 {
		l.Bad("guardtest", "Lag", c.Lag, "0 (at once) or a positive duration")
	}
	if c.Patience < 0 {
		l.Bad("guardtest", "Patience", c.Patience, "0 (10s) or a positive duration")
	}
	if c.Rounds < 0 {
		l.Bad("guardtest", "Rounds", c.Rounds, "0 (200) or more")
	}
	return l.Err()
}
