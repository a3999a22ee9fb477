// Package redisbreaker is the breaker that a fleet shares through Redis: what one process finds out, all of them know.
//
//	                  closed                          open                         half-open
//	Acquire    admits, asks nobody         refuses, asks nobody        asks for a probe's lease: one round trip
//	results    batches in the background   none are out                a probe's is told at once
//	learns     with each batch             by a poll, once a second    with each lease, and by the poll
//
// It is a leaf.Guard with the Config, the errors and the judging of package breaker; see there for the model. The circuit is one
// hash in Redis (6.2 and later; standalone, Sentinel, Cluster), and each transition one script on the server's clock: no process's
// own clock matters. cfg.Name is the instance: breakers of one name and Prefix share a circuit, also with different thresholds.
//
// # Closed
//
// Results leave in batches: a failure at once, successes within 50 ms; the caller waits for neither. The thresholds are looked at in
// the store after each result, in the order in which the batches arrive, so the circuit opens a round trip after the decisive
// failure, and a closed process learns of it with its next batch: at most 50 ms after its next result. An idle one does not ask.
// A time window is 10 buckets; a result counts for at most its time and for more than 9/10 of it. A count window is exact: the
// last n results of the fleet; of Within whole tenths leave. A batch that cannot be delivered for 1 s is dropped.
//
// # Open and half-open
//
// While the open time lasts nobody is asked but the poll. Then one call begins the half-open episode. Probes and their leases are
// the fleet's: a probe that hangs or died gives its slot back at the end of its lease, and its late result still counts while the
// episode lasts. A process that was refused for want of a slot does not ask again for up to 50 ms.
//
// # Generations
//
// Each transition makes a generation, max(the last + 1, the server's time in µs). What this process knows never moves to a lower
// one, and results of an earlier one change nothing, however late or often they arrive. So a lost key (FLUSHALL, a restart without
// persistence, a failover that lost a write) is healed by whoever knows more: an open circuit stays open.
//
// # When the store fails
//
// The breaker of package breaker runs underneath, fed with every result, and decides in an outage (leaf.FailLocal). leaf.FailOpen
// admits; leaf.FailClosed refuses where a probe's lease cannot be had. What is known of an open or forced circuit holds. A record
// that fails changes no result.
//
// With [Options].MinReporters one sick process cannot open the circuit for all.
package redisbreaker
