// Package redislimit is the limiter of package ratelimit for a fleet: one bucket in Redis (6.2 and later; standalone, Sentinel
// or Cluster) for every process that uses its name. It is the same guard with the same Config and the same errors.
//
//	l, err := redislimit.New(client, ratelimit.Config{Name: "billing", Rate: 100, Burst: 20}, redislimit.Options{})
//
// # The bucket
//
// The key prefix:limit:{name} holds digits: GCRA's theoretical arrival time, the instant at which the bucket will be full, in
// units of 1/16 µs since 2020, by the server's clock. No other clock counts. A key that is not there is a full bucket, so it
// expires when its bucket is full (and Options.IdleTTL later). A refusal writes nothing. The interval between two tokens is
// rounded up to whole units: the fleet is never faster than the rate, and slower by less than 1/16 µs per token (0.006 % at
// 1000 per second, nothing at 1,000,000 or at 100). Two rates under one name share the bucket.
//
// A quota ([NewQuota]) is the hash prefix:quota:{name}: what is spent, and for each process its last call, so that a call whose
// reply was lost counts once. It never expires.
//
// # Group commit
//
// A process has one call under way at a time; everyone who arrives meanwhile rides on the next, in the order of arrival. It
// is exact, it is fair within the process, and with 64 goroutines it costs a few hundredths of a round trip per decision. Who
// waits ([Limiter.Wait], [Limiter.Acquire]) stands in that line; its first asks again when its tokens are due, and at least
// once a second. Between processes that wait, whoever asks first gets the token. A waiter that leaves, an answer that came too
// late and a call that did not run (leaf.NotRun) give their tokens back.
//
// Options.Prefetch takes tokens ahead: no round trip for those in stock. In a window at most processes × Prefetch calls more
// than Burst + Rate × time are admitted, because they were taken before it began; a process that dies takes its stock along.
//
// # When the store does not answer
//
// Calls get what Options.OnOutage says:
//
//   - leaf.FailLocal: a local limiter at max(1, floor(Rate/Instances)) and max(1, floor(Burst/Instances)), full at each outage.
//     The fleet admits at most Instances times that. More than a share ever holds is refused with the StoreError. For a quota
//     that must hold, choose leaf.FailClosed.
//   - leaf.FailOpen: everything is admitted.
//   - leaf.FailClosed: a *leaf.StoreError, which is a refusal.
//
// A call of the store whose fate is unknown (its reply was lost, or came after Options.Timeout) is not sent twice to a limiter:
// its tokens may be gone, and come back when the answer does. A server's answer that it did not execute (no memory, read-only,
// loading …) costs nothing.
//
// Config.Clock is read in goroutines of this package, too: one that panics ends the process there, as it would in any goroutine. A
// panic of Options.Now is a failed call of the store.
//
// A server's clock that steps back mints nothing, and the bucket, empty then, fills at its rate from the step on; where only
// processes that began after the step are left, from when one of them saw it first, which takes it a second, or two intervals if
// they are longer. To them it looks like a larger Burst under the same name, as in the middle of a deploy: a larger bucket that
// nobody has used for so long while smaller ones ask for tokens may be refilled so, once an hour by each of them. [Limiter.Update]
// has no such doubt.
package redislimit
