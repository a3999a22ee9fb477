package leaf_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

// The floors: what nobody gets below.

func BenchmarkFloorTimeNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}

func BenchmarkFloorAtomicAdd(b *testing.B) {
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n.Add(1)
		}
	})
}

// both runs f in one goroutine and in as many as there are processors.
func both(b *testing.B, ctx context.Context, g leaf.Guard) {
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = leaf.Do(ctx, g, succeed)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = leaf.Do(ctx, g, succeed)
			}
		})
	})
}

func BenchmarkDo(b *testing.B) { both(b, context.Background(), open{}) }

func BenchmarkDoTimed(b *testing.B) { both(b, context.Background(), timedOpen{}) }

func BenchmarkDoDeadline(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	both(b, ctx, open{})
}

func BenchmarkShadow(b *testing.B) { both(b, context.Background(), leaf.Shadow(open{}, nil)) }

func benchKeyed() leaf.Guard {
	return leaf.Keyed(1024, tenantOf, func(string) (*opener, error) { return &opener{}, nil }, always)
}

func BenchmarkKeyed(b *testing.B) { both(b, as("tenant"), benchKeyed()) }

// BenchmarkKeyedManyKeys: goroutines of different tenants should not meet.
func BenchmarkKeyedManyKeys(b *testing.B) {
	g := benchKeyed()
	var n atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx := as("tenant " + strconv.FormatInt(n.Add(1), 10))
		for pb.Next() {
			_, _ = leaf.Do(ctx, g, succeed)
		}
	})
}

// BenchmarkKeyedNewKey is the price of a key that is not there: a guard is dropped, and one made.
func BenchmarkKeyedNewKey(b *testing.B) {
	n := 0
	g := leaf.Keyed(64, func(context.Context) int { n++; return n },
		func(int) (*opener, error) { return &opener{}, nil }, always)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = leaf.Do(b.Context(), g, succeed)
	}
}
