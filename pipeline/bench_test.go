package pipeline_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// The floors: what no pipeline can be faster than.
func BenchmarkFloor(b *testing.B) {
	epoch := time.Now()
	b.Run("now", func(b *testing.B) {
		for b.Loop() {
			_ = time.Now()
		}
	})
	b.Run("since", func(b *testing.B) {
		for b.Loop() {
			_ = time.Since(epoch)
		}
	})
	b.Run("atomic add", func(b *testing.B) {
		var n atomic.Int64
		for b.Loop() {
			n.Add(1)
		}
	})
}

func BenchmarkDo(b *testing.B) {
	attempt := timeout.MustNew(timeout.Config{Limit: time.Minute})
	total := timeout.MustNew(timeout.Config{Limit: time.Hour})
	open := breaker.MustNew(breaker.Config{OpenFor: time.Hour})
	_ = open.ForceOpen(context.Background())
	full1 := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
	held, _ := full1.Acquire(context.Background())
	defer func() { _ = held.Settle(context.Background(), leaf.Outcome{}) }()
	for _, c := range []struct {
		name string
		b    pipeline.Builder
	}{
		{"empty", pipeline.For("empty")},
		{"retry", pipeline.For("retry").Retry(retry.MustNew(retry.Config{}))},
		{"full time window", full(breaker.Window{})},
		{"full count window", full(breaker.Count(100))},
		{"full attempt timeout", full(breaker.Window{}).AttemptTimeout(attempt)},
		{"full both timeouts", full(breaker.Window{}).Timeout(total).AttemptTimeout(attempt)},
		{"open", full(breaker.Window{}).Breaker(open)},
		{"full bulkhead", full(breaker.Window{}).Bulkhead(full1)},
	} {
		p := c.b.MustBuild()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				_, _ = pipeline.Do(b.Context(), p, func(context.Context) (int, error) { n++; return n, nil })
			}
		})
		b.Run(c.name+" parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				n := 0
				for pb.Next() {
					_, _ = pipeline.Do(context.Background(), p, func(context.Context) (int, error) { n++; return n, nil })
				}
			})
		})
	}
}

func BenchmarkTwoFailuresThenSuccess(b *testing.B) {
	p := full(breaker.Count(100)).Breaker(breaker.MustNew(breaker.Config{FailureRate: breaker.Off, FailureCount: 1 << 20, Consecutive: breaker.Off})).
		Retry(retry.MustNew(retry.Config{Backoff: retry.Immediate, NoBudget: true})).MustBuild()
	down := errors.New("down")
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		_, _ = pipeline.Do(b.Context(), p, func(context.Context) (int, error) {
			if n++; n < 3 {
				return 0, down
			}
			return n, nil
		})
	}
}
