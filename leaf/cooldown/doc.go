// Package cooldown refuses until an instant that the other side asked for (Retry-After of a 429 or 503).
//
// A [Cooldown] is one instant and nothing else. [Cooldown.Hint] moves it later, at most Max ahead; until then every call is
// refused with an [*Error] that carries the wait; from the instant on, to the nanosecond, calls are admitted again. It never
// waits itself, holds nothing, and its permit is the zero one, so an admission costs one atomic load, and a clock read only
// while an instant is pending.
//
// In a pipeline a first attempt is refused; for a later attempt of the same call the wait is a new lower bound of its delay:
// no attempt is consumed, within the retry's MaxRetryAfter and the deadline, else it is a deferral.
//
// A clock may jump by decades (a testing/synctest bubble starts in 2000). An instant further ahead than Max cannot have
// been made by this clock: it counts as none, and the next Acquire forgets it. A smaller step back refuses for longer, but
// never for longer than Max.
package cooldown
