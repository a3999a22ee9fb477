package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// network is where the servers are: on loopback, or, for the test, in memory.
type network interface {
	Listen() (net.Listener, error)
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

type loopback struct{ net.Dialer }

func (*loopback) Listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// result is what happened.
type result struct {
	script        script
	without, with []summary     // per phase, and the total behind them
	changes       []change      // of the circuit
	late          time.Duration // how much later than it should the machine did something, at worst
	example       *call         // one that OnRejected gave the program's own error; nil = there was none
}

// change is a transition of the circuit, and when.
type change struct {
	breaker.Change
	at time.Duration
}

// moment is what there is to see while it runs.
type moment struct {
	at            time.Duration
	phase         int
	without, with int64 // requests inside the servers
	circuit       breaker.State
}

// run lets both sides live through the day, at the same time.
func run(ctx context.Context, on network, day time.Duration, workers int, progress func(moment)) (*result, error) {
	listeners := make([]net.Listener, 2)
	for i := range listeners {
		l, err := on.Listen()
		if err != nil {
			return nil, errors.Join(err, closeAll(listeners))
		}
		listeners[i] = l
	}

	r := &result{script: script{began: time.Now(), total: day}}
	var (
		mu      sync.Mutex
		circuit atomic.Uint32
	)
	billing := newBilling(func(c breaker.Change) { // in commit order, one at a time
		circuit.Store(uint32(c.To))
		mu.Lock()
		defer mu.Unlock()
		r.changes = append(r.changes, change{c, r.script.elapsed()})
	})

	var (
		servers [2]*server
		calls   [2][]call
		running sync.WaitGroup
	)
	for i, l := range listeners {
		servers[i] = newServer(r.script)
		defer servers[i].listen(l)()
		client := newClient(on.DialContext)
		defer client.CloseIdleConnections()
		url := "http://" + l.Addr().String()
		do := plain(client, url)
		if i == 1 {
			do = guarded(client, url, billing)
		}
		running.Go(func() { calls[i] = users(ctx, r.script, workers, do) })
	}
	r.late = watch(&running, func() {
		at := r.script.elapsed()
		progress(moment{
			at: at, phase: r.script.at(at), circuit: breaker.State(circuit.Load()),
			without: servers[0].inside.Load(), with: servers[1].inside.Load(),
		})
	})

	r.without = summarize(calls[0], servers[0])
	r.with = summarize(calls[1], servers[1])
	r.example = example(calls[1])
	return r, nil
}

// watch looks again and again until running is over. It tells how late it came to that at worst: a machine that is busy with
// something else shows here, where nothing but a timer is waited for.
func watch(running *sync.WaitGroup, look func()) (late time.Duration) {
	over, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		running.Wait()
	}()
	const every = 50 * time.Millisecond
	for asleep := time.Now(); budget.Sleep(over, nil, every) == nil; asleep = time.Now() {
		late = max(late, time.Since(asleep)-every)
		look()
	}
	return late
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// example is the first call that the open circuit refused; where there is none, the first that anything refused.
func example(calls []call) (first *call) {
	open := func(c *call) bool { return c.report.Layer == "breaker" }
	for i := range calls {
		c := &calls[i]
		switch {
		case !c.refused():
		case first == nil, open(c) && !open(first), open(c) == open(first) && c.began < first.began:
			first = c
		}
	}
	return first
}
