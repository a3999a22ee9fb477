// Package breaker stops calling what keeps failing, and probes whether it works again.
//
//	          a threshold is reached                  the open time is over, somebody calls
//	closed ──────────────────────────────► open ──────────────────────────────────────► half-open
//	   ▲                                    ▲                                             │  │
//	   │                                    └──────────────── one probe fails ────────────┘  │
//	   └───────────────────────────── ProbeSuccesses probes succeed ─────────────────────────┘
//
// Closed, results are counted in a [Window]; at a threshold the breaker opens and refuses for a time; then it is half-open
// and admits a few probes, each under a lease, whose results close or re-open it. Every permit carries the generation it
// was admitted in: results of an earlier generation change neither counts, nor slots, nor the open time. No timer and no
// goroutine runs: the open time ends with the call that comes after it.
//
// Thresholds, looked at after every recorded result, a success too. Any one of them trips:
//
//	failures/calls >= FailureRate    once the window holds MinCalls results
//	slow/calls     >= SlowRate       once the window holds MinCalls results
//	failures       >= FailureCount   always
//	the last Consecutive results are failures, while the window holds fewer than MinCalls
//
// Judging: leaf.TimedOut and leaf.Panicked are failures. leaf.NotRun, leaf.Ignored, leaf.CallerCancelled and errors that
// are rejections are neutral, before IsFailure sees anything: nothing is recorded, a probe's slot goes back.
// leaf.CallerExpired is a failure only if the callback had run BlameAfter, Ignore does not say otherwise and IsFailure agrees,
// else neutral. A call that its caller ended, one way or the other, after it had lasted SlowCall, counts as a slow call even where
// it is no failure; as a probe it stays neutral.
// leaf.Returned is neutral where Ignore says so, and else what IsFailure says.
//
// Time is the clock's monotonic nanoseconds. A clock that has gone back to before an instant that is kept (the opening, a
// probe's lease, a result) makes that instant void: the circuit may be probed, the slot is free, the window is empty.
//
// Cost: closed, Acquire is one atomic load. A success writes nothing where a count window is full of successes; in a time
// window it is one clock read and one atomic add as long as it cannot trip anything; everything else takes a lock. Nothing
// allocates but a refusal, its error.
package breaker
