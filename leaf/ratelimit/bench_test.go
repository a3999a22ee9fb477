package ratelimit

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func TestAdmissionAllocatesNothingAndARefusalOnce(t *testing.T) {
	l := MustNew(Config{Rate: 1_000_000, Burst: 1_000_000, MaxWait: time.Second})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p, err := l.Acquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Settle(bg, leaf.Outcome{})
		if !l.Allow() || l.AllowN(2) != nil || l.Wait(bg, 1) != nil {
			t.Fatal("refused")
		}
		p, err = l.TryAcquire(bg)
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Settle(bg, leaf.Outcome{Verdict: leaf.NotRun})
	}))
	empty := drained(Config{Rate: 1, Per: time.Hour})
	require.Zero(t, testing.AllocsPerRun(1000, func() { empty.Allow() }))
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		if _, err := empty.Acquire(bg); err == nil {
			t.Fatal("admitted")
		}
	}), 1.0)
}

var epoch = time.Now()

// The floor: one reading of the clock and one compare-and-swap.
func BenchmarkFloor(b *testing.B) {
	var n atomic.Int64
	for b.Loop() {
		n.CompareAndSwap(n.Load(), int64(time.Since(epoch)))
	}
}

func BenchmarkFloorParallel(b *testing.B) {
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n.CompareAndSwap(n.Load(), int64(time.Since(epoch)))
		}
	})
}

// plenty outlasts a benchmark, at a rate that divides badly.
func plenty() *Limiter { return MustNew(Config{Rate: 997, Burst: 1 << 29, MaxWait: time.Second}) }

func BenchmarkAllow(b *testing.B) {
	l := plenty()
	b.ReportAllocs()
	for b.Loop() {
		if !l.Allow() {
			b.Fatal("refused")
		}
	}
}

func BenchmarkAllowParallel(b *testing.B) {
	l := plenty()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !l.Allow() {
				b.Error("refused")
				return
			}
		}
	})
}

func BenchmarkAcquireSettle(b *testing.B) {
	l := plenty()
	b.ReportAllocs()
	for b.Loop() {
		p, err := l.Acquire(bg)
		if err != nil {
			b.Fatal(err)
		}
		_ = p.Settle(bg, leaf.Outcome{})
	}
}

func BenchmarkQuota(b *testing.B) {
	l := MustNewQuota("", int(min(math.MaxInt, int64(maxQuota))))
	b.ReportAllocs()
	for b.Loop() {
		if !l.Allow() {
			b.Fatal("refused")
		}
	}
}

func BenchmarkRefused(b *testing.B) {
	l := drained(Config{Rate: 1, Per: time.Hour})
	b.ReportAllocs()
	for b.Loop() {
		if l.AllowN(1) == nil {
			b.Fatal("admitted")
		}
	}
}

func BenchmarkRefusedWhileOthersWait(b *testing.B) {
	l := drained(Config{Rate: 1, Per: time.Hour, MaxWait: time.Hour})
	w, _ := l.join(1, time.Hour)
	defer l.leave(w)
	b.ReportAllocs()
	for b.Loop() {
		if l.AllowN(1) == nil {
			b.Fatal("admitted")
		}
	}
}
