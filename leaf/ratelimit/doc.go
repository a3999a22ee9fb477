// Package ratelimit is a token bucket, kept as GCRA on integer nanoseconds: no float accumulates, fractions of a token are
// kept, due is due to the nanosecond.
//
// A [Limiter] holds Burst tokens and starts full; Rate tokens come back per Per, evenly, one each Per/Rate. A call takes
// tokens that are there, waits for them in turn ([Limiter.Wait] and [Limiter.Acquire], at most MaxWait and never past its
// context's deadline), or is refused at once with a [*LimitedError] that says how long it would take. A refusal costs
// nothing. A call that was admitted here but refused further in gives its token back (leaf.NotRun). A quota ([NewQuota]) is
// a bucket that is never refilled.
//
// Waiters are served first in, first out, and nobody overtakes them, not even for fewer tokens. One that leaves gives its
// tokens back and wakes the next, whose turn comes earlier by as much. A waiter whose timer is late is served as of the
// instant at which it was due: the rate does not suffer.
//
// # Exactness
//
// Per/Rate need not be a whole number of nanoseconds. Time is counted in units of 1/Rate ns (reduced), in which it is one:
// 3 per second means exactly 3000 in 1000 s. Only a bucket that would not fit into 60 bits that way, such as 99,991 per day,
// counts in coarser units and rounds the interval up, by less than one part in 10^9: never faster than the rate.
//
// # Clocks
//
// A clock that goes back mints nothing: no instant counts twice, and until the clock has caught up the bucket refills no
// further. A clock that jumps back by more than a year (beyond what a full bucket takes to fill) is not that clock any more,
// as when a program enters and leaves a testing/synctest bubble, which starts in 2000: the bucket starts full again.
// A jump forward is idling, and a century of idling overflows nothing.
//
// With nobody waiting, taking a token is one reading of the clock and one compare-and-swap, without a lock.
package ratelimit
