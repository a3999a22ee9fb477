package redisbreaker

import (
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// 64 goroutines on one circuit; round trips per decision are counted at the server.
func BenchmarkSixtyFour(b *testing.B) {
	s := redistest.Start(b)
	for _, state := range []breaker.State{breaker.Closed, breaker.Open} {
		b.Run(state.String(), func(b *testing.B) {
			shared, err := New(s.Client(b), breaker.Config{Name: b.Name(), OpenFor: time.Hour}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer closeIt(b, shared)
			if state == breaker.Open {
				if err := shared.ForceOpen(bg); err != nil {
					b.Fatal(err)
				}
			}
			before := s.Calls(b, "evalsha", "eval")
			b.SetParallelism(32) // times 2 processors
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					var p leaf.Permit
					p, _ = shared.Acquire(bg)
					_ = p.Settle(bg, success)
				}
			})
			b.StopTimer()
			b.ReportMetric(float64(s.Calls(b, "evalsha", "eval")-before)/float64(b.N), "roundtrips/op")
		})
	}
}

// A probe's whole life: a lease and its settlement, two round trips.
func BenchmarkProbe(b *testing.B) {
	s := redistest.Start(b)
	shared, err := New(s.Client(b), breaker.Config{Window: breaker.Count(1), OpenFor: 1, ProbeSuccesses: 1 << 30}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer closeIt(b, shared)
	shared.run1(b, failure)
	redistest.Eventually(b, "the circuit opens", func() bool { return shared.State() != breaker.Closed })
	for b.Loop() {
		shared.run1(b, success)
	}
}
