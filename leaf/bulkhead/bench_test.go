package bulkhead

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func TestAdmissionAllocatesNothingAndARefusalOnce(t *testing.T) {
	b := MustNew(Config{MaxConcurrent: 1, MaxWait: time.Hour})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p, err := b.Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Settle(bg, leaf.Outcome{})
	}))
	hold(t, b, 1)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		if _, err := b.TryAcquire(bg); err == nil {
			t.Fatal("admitted")
		}
	}), 1.0)
}

// The floor: what nothing on this machine can beat.
func BenchmarkFloorAtomicAdd(b *testing.B) {
	var n atomic.Int64
	for b.Loop() {
		n.Add(1)
		n.Add(-1)
	}
}

func BenchmarkFloorAtomicAddParallel(b *testing.B) {
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n.Add(1)
			n.Add(-1)
		}
	})
}

func BenchmarkAcquireSettle(b *testing.B) {
	h := MustNew(Config{MaxConcurrent: 8, MaxWait: time.Second})
	b.ReportAllocs()
	for b.Loop() {
		p, err := h.Acquire(bg)
		if err != nil {
			b.Fatal(err)
		}
		_ = p.Settle(bg, leaf.Outcome{})
	}
}

func BenchmarkAcquireSettleParallel(b *testing.B) {
	h := MustNew(Config{MaxConcurrent: 1 << 20})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := h.Acquire(bg)
			if err != nil {
				b.Error(err)
				return
			}
			_ = p.Settle(bg, leaf.Outcome{})
		}
	})
}

func BenchmarkRefused(b *testing.B) {
	h := MustNew(Config{MaxConcurrent: 1})
	p, _ := h.Acquire(bg)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Acquire(bg); err == nil {
			b.Fatal("admitted")
		}
	}
	_ = p.Settle(bg, leaf.Outcome{})
}

func BenchmarkRefusedParallel(b *testing.B) {
	h := MustNew(Config{MaxConcurrent: 1})
	p, _ := h.Acquire(bg)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := h.Acquire(bg); err == nil {
				b.Error("admitted")
				return
			}
		}
	})
	_ = p.Settle(bg, leaf.Outcome{})
}
