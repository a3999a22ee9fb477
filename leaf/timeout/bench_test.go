package timeout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf/timeout"
)

func BenchmarkFloorNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}

func BenchmarkFloorAtomicAdd(b *testing.B) {
	var n atomic.Int64
	for b.Loop() {
		n.Add(1)
	}
}

func nothing(context.Context) (int, error) { return 0, nil }

func watch(ctx context.Context) (int, error) {
	ctx.Done()
	return 0, nil
}

func BenchmarkDo(b *testing.B) {
	x, ctx := limit("x", time.Hour), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = timeout.Do(ctx, x, nothing)
	}
}

func BenchmarkDoParallel(b *testing.B) {
	x, ctx := limit("x", time.Hour), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = timeout.Do(ctx, x, nothing)
		}
	})
}

// BenchmarkDoWatched is to be compared with BenchmarkByHandWatched.
func BenchmarkDoWatched(b *testing.B) {
	x, ctx := limit("x", time.Hour), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = timeout.Do(ctx, x, watch)
	}
}

// By hand there is no cause that names the limit.
func BenchmarkByHandWatched(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		_, _ = watch(ctx)
		cancel()
	}
}

// By hand the timer is armed even when nobody watches.
func BenchmarkByHand(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		_, _ = nothing(ctx)
		cancel()
	}
}
