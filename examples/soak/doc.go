// Package soak is a test that runs random pipelines under random faults and checks what has to hold whatever happens:
//
//	go test -run TestSoak -timeout 0 ./examples/soak -args -d 10m          # make soak
//	go test -run TestSoak -timeout 0 ./examples/soak -args -seed 4711 -n 1000 -same # one world, as the failure that it had prints
//
// A world is a handful of guards, shared by pipelines of a random subset of layers in either order, and callers that use them
// at once in every way there is (Do, DoDetailed, DoOr, DoDetached, nested pipelines), while callbacks fail, panic, call
// runtime.Goexit, hang, ignore their context, ask for waits and return refusals, plans and configurations are swapped, and
// clocks jump. Most worlds live in a testing/synctest bubble, where an hour passes in a millisecond and instants are exact;
// the others in real time, and some in both, one after the other.
//
// What is checked is written where it is checked: of one call in check_test.go, of its events in events_test.go, of a guard
// while callbacks run and at rest in parts_test.go and rest_test.go, with oracles that share nothing with the guards.
//
// What it has found: a leaf.Keyed that was made in a bubble ended the process when it was used outside (fixed); a deferral under
// ReturnLast lost its wait in the report (fixed); Unlimited attempts with Immediate and RetryOnBulkheadFull spin, since nothing is
// slept and nothing ran (documented, and not part of the worlds); an error whose Judge says NotRun has its token refunded though
// the callback ran (documented, and not part of the worlds). Six faults that were put in on purpose were all found. Ten minutes
// of it, 65,245 worlds and 3.2 million calls (seed 688910284198, 2026-11-30), found nothing more, and a minute of each fuzz target nothing but
// an overflow in a fuzz target's own oracle.
package soak
