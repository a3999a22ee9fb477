// Package redisbulkhead is the bulkhead that a fleet shares: at most MaxConcurrent calls at once in all its processes together.
// It takes the same Config, gives the same errors and waits by the same rules as package bulkhead; Redis (standalone, Sentinel,
// Cluster; 6.2 and later) holds the slots.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
//	db, err := redisbulkhead.New(client, bulkhead.Config{Name: "db", MaxConcurrent: 32, MaxWait: time.Second}, redisbulkhead.Options{})
//	…
//	defer db.Close(ctx)
//
// # Slots are leases
//
// A sorted set under one key holds a random token of 128 bits per admitted call, with the end of its lease by the server's clock.
// The lease is renewed at a third of LeaseTTL while the call runs, so a call may last longer than it; the slots of a process that
// died are free after LeaseTTL at the latest. A permit that comes back after its lease, because its process slept or could not
// reach the store, frees nothing; it is counted and told ("overage").
//
// # Waiting
//
// Within a process calls wait first in, first out. A slot that comes back goes to the next of the same process, without a store
// call, at most 8 times in a row; then the process gives it back and asks for one in the same script, together with those that
// are about to come to that, if they do within the time of one script and within 1 ms. Waiting processes stand in a
// line in the same set: a free slot belongs to the one that has had the fewest since it came into the line, so that processes
// with much to do get equal shares, and 2 calls here are not starved by 200 there. Who does not wait gets what the line leaves.
// A waiting process polls, every 5 to 50 ms with jitter; a pub/sub message to those whose turn it is makes it faster, and
// nothing hangs on it. Its place is good for 300 ms: one that died holds up the others no longer. MaxQueue and Queued count
// the calls of this process.
//
// One goroutine per bulkhead talks to the store, with one script at a time that carries everything that has come up meanwhile.
// It runs while calls are inside or waiting. Acquire and Settle last one round trip each, or none where a slot is handed over.
//
// # What can go wrong, and how many may be inside
//
//   - A process is frozen for longer than its lease: its slots are given to others, and while its calls go on there are as many
//     more. Once it wakes, its renewal tells, and nobody new is admitted until there are fewer than MaxConcurrent again.
//   - The store loses its data (FLUSHALL, eviction, a restart without persistence): the first process that had heard of the key
//     within a lease starts a quarantine of a third of the lease, in which nobody is admitted and every living process renews;
//     then at most MaxConcurrent are inside. Where the first one to come had not heard of it, it is admitted at once.
//   - The store cannot be asked: the outage policy decides. FailLocal admits max(1, MaxConcurrent/Instances) calls of its own in
//     each process, beside the calls that hold a slot of the store already: so at most MaxConcurrent and all the shares together,
//     twice MaxConcurrent where Instances is right and no larger than it. What is still inside from an earlier outage counts, or a
//     store that comes and goes would let in as many more each time. FailOpen admits all, FailClosed none. The store is told of
//     these calls by the first script of their process that reaches it again, before that script admits anybody, and counts them
//     until they end.
//   - The store is so slow that two scripts had no answer for a call, though they came back: the outage policy decides on that
//     call alone.
//   - A script is held up on its way for longer than its process waited for it: it gives back, and takes and renews nothing.
//   - The server's clock steps back: all leases step with it. It steps forward by more than a lease: they end.
//   - The server is out of memory: whoever asks gets the policy, slots that come back are taken.
//
// A FullError's Wait is LeaseTTL: by then the slot of a dead holder is free, an upper bound for headers only.
//
// The key is prefix:bulkhead:{name}. It lives one lease longer than its last permit. The eviction policy should be noeviction.
// Each process listens on a channel of its own, the key, a colon and 16 random bytes.
package redisbulkhead
