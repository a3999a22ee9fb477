// Package rediscooldown is the cooldown that a fleet shares: what the other side asks of one process (Retry-After of a 429 or
// 503), all keep. It takes the same Config and gives the same errors as package cooldown; Redis (standalone, Sentinel, Cluster;
// 6.2 and later) holds the instant.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
//	partner, err := rediscooldown.New(client, cooldown.Config{Name: "partner"}, rediscooldown.Options{})
//	…
//	defer partner.Close(ctx)
//
// # What is known where
//
// Each process keeps a local cooldown, and what it knows costs no round trip: an instant that is known refuses by itself, until
// it has passed, whatever the store does, and asks then whether another process has moved it meanwhile. While none is known, the store has to be asked, but not by every call: what was heard
// less than 50 ms ago is good; after 50 ms the next call starts a read in the background; after 100 ms it waits for the read
// (one for all who come meanwhile). So a process that is busy never waits, with about 20 reads a second, and one that was
// idle waits for one round trip.
//
// The bound: a process may admit for 100 ms after another one's hint has reached the store, and no longer. The process that was
// told refuses at once.
//
// # Hints
//
// Hint moves the local instant, and returns. A goroutine brings it to the store, with one script that keeps the later of the two
// instants by the server's clock; it sends what is left of the wait, so that sending again changes nothing. Hints that come
// meanwhile ride on the next script, and a hint that moves nothing here is not sent. If the store cannot be reached, it is
// tried again until the instant has passed. Close flushes.
//
// Max is each process's own: no hint of it, and no wait that it keeps, is longer. An instant further ahead in the store than its
// hint could make it, because the server's clock stepped back, is none.
//
// # Outages
//
// While the store cannot be asked, and nothing is known, FailLocal and FailOpen admit: both leave the decision to what this
// process was told itself. FailClosed refuses with a leaf.StoreError. No policy lets through what the other side asked this
// process to hold back. After the store lost its data (FLUSHALL) each process keeps what it knows.
//
// The key is prefix:cooldown:{name}; it lives as long as its instant is ahead. Update cannot change the name. A key that holds
// something else is a store failure that says so.
package rediscooldown
