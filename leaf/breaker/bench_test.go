package breaker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

// The floors: one clock read and one shared atomic write are what a success in a time window cannot do without.
func BenchmarkFloorNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}

func BenchmarkFloorSince(b *testing.B) {
	start := time.Now()
	for b.Loop() {
		_ = time.Since(start)
	}
}

func BenchmarkFloorAtomicAdd(b *testing.B) {
	var n atomic.Uint64
	for b.Loop() {
		n.Add(1)
	}
}

func BenchmarkFloorAtomicAddParallel(b *testing.B) {
	var n atomic.Uint64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n.Add(1)
		}
	})
}

var errBench = errors.New("bench")

func call(b *Breaker, o leaf.Outcome) {
	ctx := context.Background()
	p, err := b.Acquire(ctx)
	if err == nil {
		_ = p.Settle(ctx, o)
	}
}

// benches are the breakers as their users find them; each is brought to its state before the clock runs.
var benches = []struct {
	name  string
	cfg   Config
	ready func(b *Breaker)
	o     leaf.Outcome
}{
	{name: "Time", cfg: Config{Window: Time(10 * time.Second)}},
	{name: "TimeWithFailures", cfg: Config{Window: Time(10 * time.Second)}, ready: mixed},
	{name: "CountClean", cfg: Config{Window: Count(100)}, ready: clean},
	{name: "CountWithFailures", cfg: Config{Window: Count(1 << 16)}, ready: mixed},
	{name: "CountWithin", cfg: Config{Window: Count(100).Within(time.Minute)}, ready: clean},
	{name: "IsFailure", cfg: Config{IsFailure: func(err error) bool { return err != nil }}},
	{name: "Failure", cfg: Config{FailureRate: Off, FailureCount: 1 << 30, Consecutive: Off}, o: leaf.Outcome{Err: errBench}},
	{name: "RefusedOpen", cfg: Config{OpenFor: time.Hour}, ready: func(b *Breaker) {
		for b.State() == Closed {
			call(b, leaf.Outcome{Err: errBench})
		}
	}},
	{name: "RefusedForced", ready: func(b *Breaker) { _ = b.ForceOpen(context.Background()) }},
	{name: "RefusedHalfOpen", cfg: Config{OpenFor: 1, ProbeLease: time.Hour}, ready: func(b *Breaker) {
		for b.State() == Closed {
			call(b, leaf.Outcome{Err: errBench})
		}
		_, _ = b.Acquire(context.Background())
	}},
}

func clean(b *Breaker) {
	for range 1000 {
		call(b, leaf.Outcome{})
	}
}

func mixed(b *Breaker) {
	clean(b)
	for range 10 {
		call(b, leaf.Outcome{Err: errBench})
		call(b, leaf.Outcome{})
	}
}

func BenchmarkBreaker(b *testing.B) {
	for _, bench := range benches {
		g := MustNew(bench.cfg)
		if bench.ready != nil {
			bench.ready(g)
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(g, bench.o)
			}
		})
		b.Run(bench.name+"Parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call(g, bench.o)
				}
			})
		})
	}
}
