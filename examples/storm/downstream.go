package main

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// The downstream's instances. A worker serves 20 requests per second.
const (
	instances = 5
	service   = 50 * time.Millisecond // a request's work, give or take a fifth
	knee      = 8                     // requests per worker in an instance, from which on they cost each other time …
	depth     = 32                    // … up to so many, when a request costs half as much again; more are turned away
	network   = time.Millisecond      // one way
	quick     = 2 * time.Millisecond  // to say no
)

// weather is what an instance is like at an instant. The zero weather is fair.
type weather struct {
	refuses    bool          // connections
	status     int           // that it answers at once instead of working; 0 = it works
	retryAfter time.Duration // with that status
	slower     int           // work takes so many times longer, in thousandths; 0 = 1000
}

// downstream is the service that everybody calls in the end: behind a balancer that knows nothing, first in, first out, and
// like most servers it does the work of callers who have given up long ago. That makes it metastable: once its queue is longer
// than its callers' patience, all it does is wasted, and their retries keep the queue as long as it is.
//
// Nothing is decided before all that happened earlier is known: a request arrives one network delay after it was sent, so
// when the first of an instant's requests is looked at, all of the instant lie in the heap, and they are taken in the order
// of their ids, whatever the scheduler made of it. From a request's arrival on its end is known, so that is all the events there are.
type downstream struct {
	storm   *storm
	mu      sync.Mutex
	transit requests
	all     [instances]*instance
}

type request struct {
	arrives time.Duration
	id      uint64
	ends    time.Duration // filled on arrival, with err
	err     error
}

// instance is one server process.
type instance struct {
	weather func(at time.Duration) weather
	free    []time.Duration // when each worker is done with what he has and what waits for him
	within  durations       // the ends of what is inside, working or waiting
	crashes []time.Duration // still to come, in order
	broken  time.Duration   // how long after the next crash its next connection breaks
	rand    *rand.Rand
}

func newDownstream(s *storm) *downstream {
	d := &downstream{storm: s}
	for i := range d.all {
		d.all[i] = &instance{
			weather: func(at time.Duration) weather { return s.sc.weather(i, at) },
			free:    make([]time.Duration, s.sc.fleet.workers),
			broken:  time.Duration(i) * time.Microsecond,
			rand:    rand.New(rand.NewPCG(s.seed, uint64(1000+i))),
		}
		if s.sc.crashes != nil {
			d.all[i].crashes = s.sc.crashes(i)
		}
	}
	return d
}

// call is one attempt on the wire. The context's end is the caller's alone: the downstream does not hear of it.
func (d *downstream) call(ctx context.Context, id uint64) error {
	r := &request{arrives: d.storm.now() + network, id: id}
	d.mu.Lock()
	heap.Push(&d.transit, r)
	d.mu.Unlock()
	timer := time.NewTimer(network)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	d.arrivals(r.arrives)
	timer.Reset(r.ends + network - r.arrives)
	select {
	case <-timer.C:
		return r.err
	case <-ctx.Done():
		if r.err == nil {
			d.storm.tally.add(wasted, r.ends)
		}
		return ctx.Err()
	}
}

// arrivals takes in all that has arrived by now.
func (d *downstream) arrivals(now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.transit) > 0 && d.transit[0].arrives <= now {
		r := heap.Pop(&d.transit).(*request)
		i := int(mix(r.id, 'l') % instances)
		d.storm.tally.add(attempts, r.arrives)
		d.all[i].take(r)
		if r.err == nil {
			d.storm.tally.add(served, r.ends)
		}
	}
}

func (n *instance) take(r *request) {
	for len(n.crashes) > 0 && n.crashes[0] <= r.arrives { // a new process: nothing inside
		clear(n.free)
		n.within, n.crashes = n.within[:0], n.crashes[1:]
	}
	for len(n.within) > 0 && n.within[0] <= r.arrives {
		heap.Pop(&n.within)
	}
	r.ends = r.arrives + quick
	switch w := n.weather(r.arrives); {
	case w.refuses:
		r.err = errReset
	case w.status != 0:
		r.err = &statusError{code: w.status, wait: w.retryAfter, asked: w.retryAfter > 0}
	case len(n.within) >= depth*len(n.free):
		r.err = &statusError{code: http.StatusServiceUnavailable}
	default:
		n.work(r)
	}
}

// work finds the worker who is free first, and from it when the request ends.
func (n *instance) work(r *request) {
	first := 0
	for i, at := range n.free {
		if at < n.free[first] {
			first = i
		}
	}
	begins := max(r.arrives, n.free[first])
	cost := service * time.Duration(800+n.rand.IntN(401)) / 1000
	crowd := max(0, len(n.within)/len(n.free)-knee)
	cost += cost * time.Duration(crowd) / (2 * (depth - knee))
	if w := n.weather(begins); w.slower > 0 {
		cost = cost * time.Duration(w.slower) / 1000
	}
	r.ends = begins + cost
	n.free[first] = r.ends
	heap.Push(&n.within, r.ends)
	if len(n.crashes) > 0 && r.ends >= n.crashes[0] {
		r.ends, r.err = n.crashes[0]+n.broken, errReset
		n.broken += instances * time.Microsecond // no two at the same instant, whatever else crashes
	}
}

// requests is a heap by (arrives, id).
type requests []*request

func (h requests) Len() int { return len(h) }
func (h requests) Less(i, j int) bool {
	return h[i].arrives < h[j].arrives || h[i].arrives == h[j].arrives && h[i].id < h[j].id
}
func (h requests) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *requests) Push(x any)   { *h = append(*h, x.(*request)) }
func (h *requests) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// durations is a heap.
type durations []time.Duration

func (h durations) Len() int           { return len(h) }
func (h durations) Less(i, j int) bool { return h[i] < h[j] }
func (h durations) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *durations) Push(x any)        { *h = append(*h, x.(time.Duration)) }
func (h *durations) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// mix makes another number of two, as SplitMix64 does.
func mix(a, b uint64) uint64 {
	z := a + (b+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
