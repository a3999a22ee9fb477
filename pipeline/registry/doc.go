// Package registry makes pipelines and their parts of configuration, so that operators change limits without a deploy.
//
//	resilience:
//	  retry:           { payments: { max-attempts: 3, wait-duration: 250ms } }
//	  circuit-breaker: { payments: { failure-rate-threshold: 0.5, window-size: 100 } }
//	  bulkhead:        { db: { max-concurrent: 10 } }
//	  pipelines:
//	    billing: { timeout: 5s, retry: payments, circuit-breaker: payments, bulkhead: db, attempt-timeout: 1s }
//
//	reg, err := registry.LoadYAML(file)
//	…
//	receipt, err := pipeline.Do(ctx, reg.MustPipeline("billing"), charge)
//
// A registry holds one instance per section and name for its life: [Registry.Pipeline], Retry, Breaker and so on give everyone
// the same pointer, which httpx, pipeline.Wrap and hand-made pipelines take like any other. examples/config/resilience.yaml is
// the reference of every key, with unit, default and range. A key that is absent, or null, means the leaf's own default; what is
// there is never taken for a default: a 0 that means nothing is an error. Where retry or circuit-breaker has no entry at all,
// every name is served with defaults; any other name that is not there is an error that lists what is.
//
// Numbers are seconds where a duration is wanted; 250ms, 1h30m, 5d, and ISO 8601 from days to seconds (P1DT2H) are durations,
// too. The words true and false are the only booleans. What one reader of YAML takes for another thing than the next is refused:
// 010, 1_000, 1:30, yes, tags, merge keys (<<). Keys, names of instances and matchers are checked; so is what they mean together.
// All errors of a document come at once, each with its path and the text as written.
//
// YAML, JSON and Go maps go through one decoder. An alias may stand for a whole entry. Documents above 1 MiB, with more than 1,000
// names in a section, nested deeper than 32 or with more than 50,000 values are refused.
//
// # Changing it
//
// [Registry.Reload] changes parameters and keeps what the instances know; [Registry.Watch] does it when a file changes. A document
// is tried whole on instances of its own before anything is touched, so that an invalid one changes nothing. enabled: false turns
// every pipeline of the registry into a plain call, each with one atomic store: a call sees all of its pipeline or none of it, and
// one that has begun keeps what it began with, so that its permits go back to where they are from. Parts that are used by hand,
// without a pipeline, stay what they are. A pipeline that a reload removed stays, for who holds it, on parts that later reloads
// may change.
//
// # Shared instances
//
// shared: true makes the circuit breaker, rate limiter, bulkhead or cooldown one for all processes that use the store: a server by
// its URL, or, for Sentinel and Cluster, what the client of [WithClient] speaks to. Loading
// never dials the store: the client dials when it is first needed, and a shared circuit reads what the fleet knows in its first
// Acquire. Close ends all of it.
package registry
