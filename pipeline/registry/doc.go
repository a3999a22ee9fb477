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
// All errors of a document come at once, each with its path and the text as written; after 100 the rest is counted. What the keys
// of an entry mean together is looked at once each of them can be read. What is written never gives way to a default: a
// wait-duration above what max-wait is where it is not written is an error, and so on.
//
// No message repeats what may be a password: a URL is told without its user and the values of its query, any other text with an @
// or with password= not at all, and where the store or its URL should stand, what is something else by its kind alone.
//
// YAML, JSON and Go maps go through one decoder. An alias may stand for a whole entry. Documents above 1 MiB, with more than 1,000
// names in a section, nested deeper than 32 or with more than 50,000 values are refused.
//
// # Changing it
//
// [Registry.Reload] changes parameters and keeps what the instances know; [Registry.Watch] does it when a file changes. A document
// is tried whole on instances of its own before anything is touched, so that an invalid one changes nothing. A pipeline that a
// reload removed stays, for who holds it, on parts that later reloads may change.
//
// What a program makes of the registry's pipelines (metrics, say) follows in the hook of [WithOnReload]. A hook that uses the
// registry is an option of what makes it, so the registry is declared first:
//
//	var reg *registry.Registry
//	reg, err = registry.LoadYAML(f, registry.WithOnReload(func(error) { _ = telemetry.WatchAll(reg) })) // otelx
//	…
//	err = errors.Join(telemetry.WatchAll(reg), reg.Watch(ctx, f.Name(), nil))
//
// enabled: false turns every pipeline of the registry into a plain call, those that a reload removed included: with one atomic
// store for all of them, so that at each instant either all are on or all are off. When Reload has returned, no call that begins
// sees the old state. Each call, also one inside another, reads the switch once, when it begins, and keeps what it read to its
// end: its permits go back to where they are from. A reload that switches off does that before everything else, one that
// switches on does it last: no call that begins meanwhile goes by a part of the new document under the switch of the old one, or
// the other way round. What has begun meets the limits of its parts as they are when it comes to them, as in every reload. Two
// documents that are both enabled follow each other part by part: the switch is what makes a change whole. Should a commit fail
// after its trial did not, all is undone, the switch last: calls may have been plain for that moment, and were never half on.
// Parts that are used by hand, without a pipeline, know no switch.
//
// # Shared instances
//
// shared: true makes the circuit breaker, rate limiter, bulkhead or cooldown one for all processes that use the store: a server by
// its URL, or, for Sentinel and Cluster, what the client of [WithClient] speaks to. Loading
// never dials the store: the client dials when it is first needed, and a shared circuit reads what the fleet knows in its first
// Acquire. Close ends all of it.
package registry
