// Package retry runs a callback again.
//
//	fn fails ─► is it of a kind that is never retried? ─► attempts left? ─► delay: max(backoff with jitter, wait asked for)
//	         ─► does it fit MaxRetryAfter, ctx's deadline, MaxElapsed, the declaration? ─► a token of the budget ─► sleep ─► fn
//
// Never retried: [Permanent] errors, a rejection of any pipeline, another loop's [*Error] (unless RetryNested), the caller's own
// context error, panics. StopIf beats RetryIf. A failure that is not retried by its kind comes back unchanged; everything
// else that stops the loop is an [*Error] with the last failure in it. Two kinds need a word more: a rejection that fn
// returns after an earlier run is in an [*Error] too, since the call is none any more; and the caller's own context error is one with
// reason ContextEnded that matches ctx's Err and Cause, and the last real failure where there was one.
//
// A delay is the rung of Backoff capped by MaxDelay, then jittered, then capped again:
//
//	step  = min(Backoff(k), MaxDelay)
//	delay = min(Jitter(step), MaxDelay)
//
// A wait that the other side asked for is a lower bound: never earlier, never shortened; upward jitter of at most one backoff
// step spreads the herd (the jitter, never the wait, is cut where their sum would not fit). A wait longer than
// MaxRetryAfter or than the time left is not slept: the call returns at once, as a deferral that carries it.
// That upward jitter is as wide as Jitter itself, so that [None] has none. A wait of exactly MaxRetryAfter is slept.
//
// Time left is ctx's deadline on the policy's Clock. What does not fit is not started: the call returns at once.
// The clock is read only where there is a deadline, a MaxElapsed or a declared [Safety].
//
// A budget (package budget) bounds what retries add to the load: a token is reserved when a retry is scheduled, spent when
// it is sent, and given back on every other way out, panics and runtime.Goexit included.
//
// When ReturnLast is set, the last failure comes back bare, once fn has run; why the loop stopped is then not told.
package retry
