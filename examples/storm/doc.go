// Command storm shows what a policy does in an outage: real pipelines and leaves of Fairlead, none of them re-implemented, driven
// through faults in virtual time, one policy beside another.
//
//	go run ./examples/storm                                          # tables; the curves go to a page in the temporary folder
//	go run ./examples/storm -config examples/storm/policy.yaml       # your own pipeline, from a registry file, beside them
//	go run ./examples/storm -scenarios brownout -clients 20          # one fault, the same calls from fewer processes
//	go run ./examples/storm -json                                    # everything, for machines
//	go run ./examples/storm -pictures examples/storm/pictures        # the pictures of README.md
//
// # The model
//
//	users ─► 200 clients ─► [gateway ─► orders] ─► balancer ─► 5 instances
//	          a pipeline     a pipeline each                    4 workers, one queue each
//	          each           (scenario layers)
//
// Users come at random, 240 a second, whatever became of the others, and give up after 2 s. The balancer draws an instance and knows
// nothing. An instance serves first in, first out, 50 ms of work per request: 400 a second in all. It does not hear when a caller
// leaves, and works for nobody; above 8 requests per worker they cost each other time, up to half as much again; above 32 it turns
// them away. So it is metastable: once its queue is longer than the callers' patience it does nothing but waste, and their retries
// keep the queue as long as it is. All policies of a scenario meet the same users. What each scenario and policy is stands in
// scenario.go and policy.go, in a few lines each.
//
// A second's calls, successes and refusals are counted in the second in which the call began; requests in that in which they arrive.
//
// # The driver
//
// Each run is a testing/synctest bubble: a goroutine per call, package time itself as the virtual clock, the layers with no Clock at
// all, so that what runs is what runs in production, timers and contexts included. It is exact, because the bubble's clock moves only
// when every goroutine is blocked; a driver on a fake clock would have to know where in the library each call waits, and a
// re-implementation would show its own rules. A bubble that ends with a goroutine left panics, so every run also looks for leaks.
// The bubbles hang on the *testing.T that testing.Main gives a program.
//
// The same seed gives the same bytes, on any number of processors. A scheduler may run the goroutines of one instant in any order,
// so nothing shows that order: the downstream takes what arrives at an instant in the order of the requests' ids, after all of it is
// known (downstream.go); a process's randomness is a function of the instant; counting commutes. What remains is that two calls of
// one process meet its breaker or its budget at the same nanosecond, which is left to the size of a nanosecond.
//
// # What it shows
//
// Retries without a limit, jittered or not, turn a brown-out, a slow-down and even a rolling deploy into an outage that does not
// end; three layers of them are 27 requests per call. Doing nothing recovers. The breaker is what ends the storm, inside the retry
// sooner than outside. The default retry budget does not, in small processes: its floor is 10 retries a second in each of them, so that it
// begins to bind above 5.6 calls a second and process (try -clients 20), and what it has saved goes at once. The attempt timeout has its
// price: where answers are slow but come, it turns a wait into a failure and a second request. In the 429 scenario the cooldown
// takes the peaks off (1.4 requests per call in the worst second, not 2.1) by refusing a quarter of the calls, which the retry
// alone would have served a second later.
package main
