// Package redisscript is what the guards that a fleet shares through Redis have in common: where their keys lie, how a script
// is sent once, how long a call waits for it, what a failure means, and what is known of the store's health.
//
//	store, err := redisscript.Open(client, "redislimit", "limit", cfg.Name, redisscript.Options{…}) // sends nothing
//	reply, err := store.Do(ctx, redisscript.Call{Op: leaf.OpAdmit, Script: take, Args: []any{n}})
//	n, err := reply.Int()
//
// # Scripts
//
// One script per transition, and one key per instance ([Key]). A [Script] is package-level; its Lua starts with a prelude
// ([NewScript]) that sets key, now (the server's TIME, asked for once, in µs), int() and expire(). ARGV[1] is taken: it is 0, or
// the virtual now of Options.Now. The call's own arguments begin at ARGV[2]. What comes back is a [Reply].
//
// go-redis sends each command once: a reply that was lost must not execute a script again. A script that is idempotent by a
// token says so (Call.Resend), and is sent once more where its fate is unknown and time is left. The digest is sent first, and
// the source where the server does not know it.
//
// # Time
//
// A call runs in a goroutine of its own and is left there when its budget is over: min(Timeout, time left of ctx) to admit, and
// the store's timeout alone to record. The script may still run. Then Call.Late gets the reply, to take back what nobody waits
// for. At most 64 calls of a store are under way, those left behind included; where 64 were left, the next one is refused at once.
//
// # Errors
//
// Do's error is ctx's own where ctx ended first, and a *leaf.StoreError otherwise. NotExecuted is true where that is certain:
// no connection (none in time, dial error, pool timeout, handshake), a server that says so (NOSCRIPT, LOADING, READONLY,
// MASTERDOWN, CLUSTERDOWN, TRYAGAIN, OOM, MISCONF, NOREPLICAS, BUSY, NOAUTH, WRONGPASS, NOPERM, an unknown command), the store's
// breaker open, 64 calls left behind, or a closed store. Everything else may have been executed.
//
// # Health
//
// The first failure begins an outage: OnStore hears "failed", and the policy decides. The first success ends it: "recovered". A
// guard applies its policy to every *leaf.StoreError it gets; [Store.Outages] tells when a local fallback has to start anew.
//
// Five failures in a row that probing can get over (silence, no connection, a server that serves nobody) open the store's
// breaker: then Do costs no more than an allocation, while one goroutine probes, after 100 ms, 200 ms… up to 1 s (on a
// Cluster at once when the key has got another master). A server that answers and refuses this one thing is asked every time.
//
// Hooks run outside every lock, in the order of the switches, each switch once, and whoever tells them waits for them (for 2 ms
// at most with Options.Aside). A hook's
// panic is held back until the guard calls [Store.Repanic], at the beginning of Acquire, where it holds nothing; its
// runtime.Goexit ends nothing but the hook.
//
// # Background
//
// [Store.Go] runs what a guard needs beside its calls; [Store.Close] ends all of it, and leaves the client open.
package redisscript
