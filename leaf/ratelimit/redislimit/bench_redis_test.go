package redislimit

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// BenchmarkOneKey is 64 goroutines (and 1) on one key: decisions per second, the latency of one, and what the server saw.
func BenchmarkOneKey(b *testing.B) {
	for name, ahead := range map[string]int{"exact": 0, "prefetch 100": 100} {
		for _, goroutines := range []int{1, 64} {
			b.Run(name+"/"+strconv.Itoa(goroutines), func(b *testing.B) {
				server := redistest.Start(b)
				l := of(b, server).limiter(ratelimit.Config{Rate: 1_000_000, Burst: 1_000_000}, func(o *Options) { o.Prefetch = ahead })
				if err := l.AllowN(bg, 1); err != nil {
					b.Fatal(err)
				}
				server.ResetCalls(b)
				took := make([][]time.Duration, goroutines)
				var all sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for g := range goroutines {
					share := b.N / goroutines
					if g < b.N%goroutines {
						share++
					}
					all.Go(func() {
						times := make([]time.Duration, 0, share)
						for range share {
							began := time.Now()
							_ = l.AllowN(bg, 1) // both answers are decisions
							times = append(times, time.Since(began))
						}
						took[g] = times
					})
				}
				all.Wait()
				b.StopTimer()
				flat := slices.Concat(took...)
				slices.Sort(flat)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric(float64(flat[len(flat)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(flat[len(flat)*99/100].Microseconds()), "p99-µs")
				b.ReportMetric(float64(server.Calls(b, "evalsha", "eval"))/float64(b.N), "trips/op")
			})
		}
	}
}
