package main

import (
	"net/http"
	"sync"
	"time"
)

// whoHeader says which process calls.
const whoHeader = "X-Process"

// bank is the service that the fleet must not overload. It counts what really reaches it.
type bank struct {
	mu     sync.Mutex
	work   time.Duration // of one call
	down   bool          // answers 503, at once
	inside map[string]int
	total  int
	chapter
}

// chapter is what the bank saw in one part of the story.
type chapter struct {
	began      time.Time
	came       map[string]int // calls, by process
	failed     int
	mostInside int
	mostBurst  float64 // the fullest that a bucket of calls got which leaks at the limit's rate: no more than burst, if the limit holds
	level      float64
	leaked     time.Time
	fault      time.Time // the first
}

func newBank(work time.Duration) *bank {
	b := &bank{work: work, inside: map[string]int{}}
	b.next()
	return b
}

// next begins a chapter and gives the one that ends.
func (b *bank) next() chapter {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, now := b.chapter, time.Now()
	b.chapter = chapter{began: now, came: map[string]int{}, mostInside: b.total, leaked: now}
	return old
}

// all is how many calls came.
func (c chapter) all() (n int) {
	for _, k := range c.came {
		n += k
	}
	return n
}

func (b *bank) be(work time.Duration, down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.work, b.down = work, down
}

// now is how many are inside, by process and together, and how many came in this chapter, since when.
func (b *bank) now() (inside map[string]int, total, came int, began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	inside = map[string]int{}
	for who, n := range b.inside {
		inside[who] = n
	}
	return inside, b.total, b.all(), b.began
}

func (b *bank) enter(who string) (work time.Duration, down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside[who]++
	b.total++
	b.came[who]++
	b.mostInside = max(b.mostInside, b.total)
	now := time.Now()
	b.level = max(0, b.level-rate*now.Sub(b.leaked).Seconds()) + 1
	b.leaked = now
	b.mostBurst = max(b.mostBurst, b.level)
	if b.down {
		if b.failed++; b.failed == 1 {
			b.fault = now
		}
	}
	return b.work, b.down
}

func (b *bank) leave(who string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside[who]--
	b.total--
}

// ServeHTTP takes its time, unless the caller is gone.
func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := r.Header.Get(whoHeader)
	work, down := b.enter(who)
	if !down {
		timer := time.NewTimer(work)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	b.leave(who)
	if down {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
