package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/bulkhead/redisbulkhead"
	"github.com/redis/go-redis/v9"
)

// names are the processes'.
var names = []string{"A", "B", "C"}

// fleet is the processes and what is known of them.
type fleet struct {
	*timeline
	bank     *bank
	settings settings // of a process, but for its name
	odd      string   // an error of a call that the story does not know
	client   *redis.Client
	count    *redisbulkhead.Bulkhead // asks only how many slots are taken: the operator's view

	mu      sync.Mutex
	running map[string]*process
	circuit map[string]string    // as each process told it
	since   map[string]time.Time // when it did
	down    map[string]bool      // guards without a store, by process and name
	outages int                  // how often one lost it
	found   time.Time            // when one last found it
}

func newFleet(t *timeline, b *bank, s settings) (*fleet, error) {
	f := &fleet{
		timeline: t, bank: b, settings: s, client: redis.NewClient(&redis.Options{Addr: s.Redis}),
		running: map[string]*process{}, circuit: map[string]string{}, since: map[string]time.Time{}, down: map[string]bool{},
	}
	var err error
	f.count, err = redisbulkhead.New(f.client, bulkhead.Config{Name: "bank", MaxConcurrent: slots},
		redisbulkhead.Options{Prefix: s.Prefix, Timeout: s.Timeout, LeaseTTL: lease})
	if err != nil {
		return nil, errors.Join(err, f.client.Close())
	}
	return f, nil
}

// join starts a process.
func (f *fleet) join(name string) error {
	s := f.settings
	s.Name = name
	p, err := spawn(s, f.hear)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.running[name], f.circuit[name] = p, "closed"
	f.mu.Unlock()
	f.tell(event{What: "note", Who: name, Text: fmt.Sprintf("starts, process %d", p.cmd.Process.Pid)})
	return nil
}

// hear is told what a process says, in order.
func (f *fleet) hear(name string, m message) {
	at := time.Unix(0, m.At)
	text := fmt.Sprintf("its circuit goes from %s to %s: %s", m.From, m.To, m.Reason)
	f.mu.Lock()
	switch m.What {
	case "circuit":
		f.circuit[name], f.since[name] = m.To, at
	case "store":
		guard := name + " " + m.Guard
		switch m.To {
		case "failed":
			f.down[guard] = true
			f.outages++
			text = fmt.Sprintf("its %s has lost Redis and goes on alone: %s", m.Guard, m.Reason)
		case "recovered":
			delete(f.down, guard)
			f.found = at
			text = fmt.Sprintf("its %s is shared again", m.Guard)
		default:
			text = fmt.Sprintf("%s: %s %s", m.Guard, m.To, m.Reason)
		}
	}
	f.mu.Unlock()
	f.at(at, event{What: m.What, Who: name, Text: text})
}

// circuits says whether all that run are in a state, and since when the first and the last.
func (f *fleet) circuits(state string) (first, last time.Time, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.running {
		if f.circuit[name] != state {
			return first, last, false
		}
		at := f.since[name]
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return first, last, true
}

// shared says whether every guard has its store.
func (f *fleet) shared() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.down) == 0
}

func (f *fleet) lost() (outages int, found time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outages, f.found
}

// chapter begins one, everywhere; what the processes and the bank have counted since the last one comes back.
func (f *fleet) chapter(ctx context.Context, title string) (map[string]tally, chapter, error) {
	if title != "" {
		f.tell(event{What: "chapter", Text: title})
	}
	tallies := map[string]tally{}
	seen := f.bank.next()
	for name, p := range f.processes() {
		t, err := p.chapter(ctx)
		if err != nil {
			return nil, seen, err
		}
		tallies[name] = t
		f.odd = cmp.Or(t.Odd, f.odd)
	}
	return tallies, seen, nil
}

func (f *fleet) processes() map[string]*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.running)
}

// kill kills a process.
func (f *fleet) kill(name string) {
	f.mu.Lock()
	p := f.running[name]
	delete(f.running, name)
	f.mu.Unlock()
	p.kill()
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.down, func(guard string, _ bool) bool { return strings.HasPrefix(guard, name+" ") })
}

// end lets every process finish.
func (f *fleet) end() (err error) {
	for name, p := range f.processes() {
		t, endErr := p.end()
		if endErr != nil {
			err = errors.Join(err, fmt.Errorf("process %s: %w", name, endErr))
		}
		f.odd = cmp.Or(t.Odd, f.odd)
		f.mu.Lock()
		delete(f.running, name)
		f.mu.Unlock()
	}
	return err
}

// close ends what is left of the fleet: after an error, with processes that run.
func (f *fleet) close() {
	for name := range f.processes() {
		f.kill(name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = f.count.Close(ctx) // it holds nothing
	_ = f.client.Close()   // nothing to lose
}

// taken is how many slots Redis counts; -1 where it does not answer.
func (f *fleet) taken(ctx context.Context) int {
	n, err := f.count.InUse(ctx)
	if err != nil {
		return -1
	}
	return n
}

// scripts is how many scripts the server has run so far: each is a guard's round trip.
func (f *fleet) scripts(ctx context.Context) (sum int, err error) {
	info, err := f.client.Info(ctx, "commandstats").Result()
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_eval"); ok {
			_, rest, _ = strings.Cut(rest, "calls=")
			digits, _, _ := strings.Cut(rest, ",")
			n, bad := strconv.Atoi(digits)
			if bad != nil {
				return 0, bad
			}
			sum += n
		}
	}
	return sum, err
}

// sample tells who holds what, twice a second, until ctx ends; not while quiet says so.
func (f *fleet) sample(ctx context.Context, quiet func() bool) {
	const every = 500 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	before, last := 0, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if quiet() {
			continue
		}
		redis := f.taken(ctx)
		inside, total, came, began := f.bank.now()
		if began.After(last) { // a new chapter
			before, last = 0, began
		}
		now := time.Now()
		s := &sample{Inside: inside, Total: total, Redis: redis, PerSecond: float64(came-before) / now.Sub(last).Seconds()}
		before, last = came, now
		f.mu.Lock()
		s.Circuits = maps.Clone(f.circuit)
		f.mu.Unlock()
		f.tell(event{What: "sample", Sample: s})
	}
}

// await waits until ok says yes.
func await(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
