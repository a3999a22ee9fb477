//go:build !race

package pipeline_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// A regression of 2 × must not land unseen. How long a call takes depends on the machine, how many times as long as a floor in
// the same process much less: the floor does by hand what every call has to do, and so goes along with the machine. Each is
// run in short slices, in turns, and the fastest slice of each counts, which the machine's other work did not meet.
//
// most is about 1.5 times what was measured (-v shows it): far from noise, and well below 2 times. After a change that makes
// something faster, bring it down; a ratio that must go up says so in the commit.
var speeds = []struct {
	name string
	most float64 // times the floor
	call func() func()
}{
	{"empty", 0.85, func() func() { return calls(pipeline.For("p"), nil) }},
	{"full, time window", 3.5, func() func() { return calls(full(breaker.Window{}), nil) }},
	{"full, count window", 2.8, func() func() { return calls(full(breaker.Count(100)), nil) }},
	{"full, breaker outside", 3.8, func() func() { return calls(full(breaker.Window{}).BreakerOutsideRetry(), nil) }},
	{"full, attempt timeout", 4.9, func() func() {
		return calls(full(breaker.Window{}).AttemptTimeout(timeout.MustNew(timeout.Config{Limit: time.Minute})), nil)
	}},
	{"open", 2.7, func() func() {
		open := breaker.MustNew(breaker.Config{})
		_ = open.ForceOpen(context.Background())
		return calls(full(breaker.Window{}).Breaker(open), breaker.ErrOpen)
	}},
	{"full bulkhead", 3.9, func() func() {
		slots := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		held, _ := slots.Acquire(context.Background())
		_ = &held // never settled: the slot stays taken
		return calls(full(breaker.Window{}).Bulkhead(slots), bulkhead.ErrFull)
	}},
	{"two failures, then ok", 14.3, func() func() {
		p := full(breaker.Window{}).Breaker(breaker.MustNew(breaker.Config{FailureRate: breaker.Off, FailureCount: 1 << 20, Consecutive: breaker.Off})).
			Retry(retry.MustNew(retry.Config{Backoff: retry.Immediate, NoBudget: true})).MustBuild()
		return func() {
			n := 0
			_, err := pipeline.Do(context.Background(), p, func(context.Context) (int, error) {
				if n++; n < 3 {
					return 0, errDown
				}
				return n, nil
			})
			must(err, nil)
		}
	}},
	{"breaker alone", 1.5, func() func() { return alone(breaker.MustNew(breaker.Config{})) }},
	{"limiter alone", 1.5, func() func() {
		return alone(ratelimit.MustNew(ratelimit.Config{Rate: 1_000_000, Burst: 1_000_000_000}))
	}},
	{"bulkhead alone", 0.8, func() func() { return alone(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 10})) }},
}

// calls is one call through b that ends with want.
func calls(b pipeline.Builder, want error) func() {
	p := b.MustBuild()
	n := 0
	return func() {
		_, err := pipeline.Do(context.Background(), p, func(context.Context) (int, error) { n++; return n, nil })
		must(err, want)
	}
}

func alone(g leaf.Guard) func() {
	n := 0
	return func() {
		_, err := leaf.Do(context.Background(), g, func(context.Context) (int, error) { n++; return n, nil })
		must(err, nil)
	}
}

func must(err, want error) {
	if err != want && !errors.Is(err, want) {
		panic(err)
	}
}

// floor is the least that a call with three guards costs, by hand: a reading of the clock, the word of each guard read and
// swapped to admit and to settle, through an interface, and a defer that is always there.
func newFloor() func() {
	epoch := time.Now()
	var words [3]atomic.Int64
	var guards [3]interface{ CompareAndSwap(old, new int64) bool }
	for i := range words {
		guards[i] = &words[i]
	}
	var calls atomic.Int64
	return func() {
		defer calls.Add(1)
		now := int64(time.Since(epoch))
		for i := range guards {
			guards[i].CompareAndSwap(words[i].Load(), now)
		}
		for i := range guards {
			guards[i].CompareAndSwap(words[i].Load(), 0)
		}
	}
}

func TestSpeedStaysNearTheFloor(t *testing.T) {
	const (
		rounds = 400
		each   = 100 // calls: some 10 µs, less than a time slice of the scheduler
	)
	best := make([]time.Duration, len(speeds)+1)
	all := []func(){newFloor()}
	for i := range best {
		best[i] = math.MaxInt64
		if i > 0 {
			all = append(all, speeds[i-1].call())
		}
	}
	for range rounds {
		for i, f := range all {
			began := time.Now()
			for range each {
				f()
			}
			best[i] = min(best[i], time.Since(began))
		}
	}
	t.Logf("the floor: %v", best[0]/each)
	for i, s := range speeds {
		ratio := float64(best[i+1]) / float64(best[0])
		t.Logf("%-24s %6.2f, at most %5.2f: %v", s.name, ratio, s.most, best[i+1]/each)
		if ratio > s.most {
			t.Errorf("%s: %.2f times the floor, want at most %.2f", s.name, ratio, s.most)
		}
	}
}
