package main

import "time"

// phase is a time in the server's life.
type phase struct {
	name  string
	about string
	share int           // how much of the day, against the others
	rush  int           // how many calls each user starts per pace
	work  time.Duration // what a request costs the server while it is not overloaded
	down  bool          // and then every one of them fails
	quota int           // served per second, the rest gets a 429; 0 = no quota
}

// The server is as servers are. It works on so many requests at once, and the others queue. Those cost it memory and locks,
// so that the more they are the longer all of the work takes: with 60 inside twice as long as with 12.
const (
	slots = 12  // what it works on at once
	odd   = 50  // in every phase, of so many requests one is answered with a 500
	lost  = 100 // and of so many one is never answered
)

var phases = []phase{
	{
		name: "healthy", share: 6, rush: 1, work: 10 * time.Millisecond,
		about: "10 ms per request; 2% of them fail and 1% are lost, as on any day",
	}, {
		name: "slow", share: 8, rush: 1, work: 200 * time.Millisecond,
		about: "200 ms per request, 12 at once: it can serve 60 per second",
	}, {
		name: "failing", share: 8, rush: 1, work: 50 * time.Millisecond, down: true,
		about: "every request ends in a 500, after 50 ms of work",
	}, {
		name: "limited", share: 10, rush: 1, work: 10 * time.Millisecond, quota: 80,
		about: "80 per second are served, and a 429 with Retry-After: 1 is for the rest",
	}, {
		name: "recovering", share: 8, rush: 2, work: 40 * time.Millisecond,
		about: "40 ms per request: it can serve 300 per second, and users call twice as often",
	},
}

// pace is the time in which each user starts one call (in a rush more), whether or not the one before has ended.
const pace = 200 * time.Millisecond

// script says when which phase is. It is the same for both servers and for the users.
type script struct {
	began time.Time
	total time.Duration
}

// length is how long a request keeps its slot when so many are inside.
func (p phase) length(inside int64) time.Duration {
	return p.work + p.work*time.Duration(max(0, inside-slots))/(4*slots)
}

// ends is when phase i is over, since the beginning.
func (s script) ends(i int) time.Duration {
	var all, upTo int
	for n, p := range phases {
		all += p.share
		if n <= i {
			upTo += p.share
		}
	}
	return s.total * time.Duration(upTo) / time.Duration(all)
}

// elapsed is the time since the beginning.
func (s script) elapsed() time.Duration { return time.Since(s.began) }

// at is the phase at an instant; what comes after the last one belongs to it.
func (s script) at(elapsed time.Duration) int {
	for i := range phases {
		if elapsed < s.ends(i) {
			return i
		}
	}
	return len(phases) - 1
}
