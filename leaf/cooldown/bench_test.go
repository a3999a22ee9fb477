package cooldown

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAdmissionAllocatesNothingAndARefusalOnce(t *testing.T) {
	g := MustNew(Config{Max: time.Hour})
	admit := func() {
		if _, err := g.Acquire(bg); err != nil {
			t.Fatal(err)
		}
	}
	require.Zero(t, testing.AllocsPerRun(1000, admit))
	g.Hint(bg, time.Hour)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		if _, err := g.Acquire(bg); err == nil {
			t.Fatal("admitted")
		}
	}), 1.0)
}

// The floors: what nothing on this machine can beat, for an open one and for one that looks at the clock.
func BenchmarkFloorAtomicLoad(b *testing.B) {
	var p atomic.Pointer[int]
	for b.Loop() {
		if p.Load() != nil {
			b.Fatal()
		}
	}
}

var epoch = time.Now()

func BenchmarkFloorTimeSince(b *testing.B) {
	for b.Loop() {
		_ = time.Since(epoch)
	}
}

func BenchmarkOpen(b *testing.B) {
	g := MustNew(Config{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Acquire(bg); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenParallel(b *testing.B) {
	g := MustNew(Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = g.Acquire(bg)
		}
	})
}

func BenchmarkRefused(b *testing.B) {
	g := MustNew(Config{Max: time.Hour})
	g.Hint(bg, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Acquire(bg); err == nil {
			b.Fatal("admitted")
		}
	}
}
