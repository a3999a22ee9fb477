// Package otelx tells OpenTelemetry what pipelines do: metrics, and one event per attempt on the caller's span. It is a module
// of its own, so that OpenTelemetry stays out of the library's go.mod; it needs the API alone, the SDK is the program's choice.
//
//	telemetry, err := otelx.New(otelx.Config{}) // the global MeterProvider
//	defer telemetry.Close()
//	stop, err := telemetry.Watch(charge)        // any pipeline, at any time; WatchAll for a registry
//
// What there is, with the attributes that tell its series apart (all of low cardinality: they are names of the program's own
// and words of this library's):
//
//	resilience.pipeline.duration       histogram, s          a call, from its start to its end: waits and backoffs included
//	                                   resilience.pipeline.name, resilience.outcome, resilience.reason
//	resilience.attempts                counter, {attempt}    runs of the callback
//	                                   resilience.pipeline.name, resilience.outcome
//	resilience.rejections              counter, {rejection}  attempts that a guard refused
//	                                   resilience.pipeline.name, resilience.layer, resilience.reason
//	resilience.circuit_breaker.state   gauge, {breaker}      1 for the state that it is in, 0 for the others
//	                                   resilience.pipeline.name, resilience.circuit_breaker.name, resilience.circuit_breaker.state
//	resilience.bulkhead.in_use         gauge, {call}         slots in use; of a shared bulkhead, this process's
//	                                   resilience.pipeline.name, resilience.bulkhead.name
//	resilience.retry_budget.balance    gauge, {token}        retries that could be paid for now
//	                                   resilience.pipeline.name
//
//	resilience.outcome                 of a call: succeeded, failed, rejected, deferred, expired, cancelled; of an attempt: succeeded, failed
//	resilience.reason                  of a call: why the retry stopped (attempts_exhausted, …), left out where it did not; of a
//	                                   rejection: refused, or store_failed where it was the guard's store that failed
//	resilience.layer                   cooldown, breaker, ratelimit, guard, bulkhead
//	resilience.circuit_breaker.state   closed, open, half_open
//
// The gauges are read when a reader collects, from whatever shows itself as a breaker or a bulkhead (leaf.Inspector), your own
// guards and those behind a leaf.Shadow included; a leaf.Keyed shows its guards as one, and none of them here. A guard
// that panics when asked is left out, and nothing else is. A guard or a budget that pipelines of several names share is reported
// for each name: compare such series, do not add them.
//
// Two pipelines of one name share their series, and so do two guards of one name in a pipeline. Their values are added up: calls
// as well as slots in use, breakers in a state (so that 2 may be open), and tokens. A guard or a budget that such pipelines
// share is counted once. To tell them apart, give each a name of its own.
//
// An attempt is an event resilience.attempt on the span that the caller's context carries, if that records: never a new span.
// Its attributes: resilience.pipeline.name, resilience.attempt.number, resilience.attempt.duration (s), resilience.outcome,
// error.type (the error's Go type), and error.message where [Config] has an ErrorText: an error's text may hold secrets.
//
// Recording costs no allocation once a series is known. Everything here is safe for concurrent use and starts no goroutine.
package otelx
