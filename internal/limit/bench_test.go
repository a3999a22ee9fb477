package limit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
)

var benched = &Spec{"bench", time.Hour, newTestCause}

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

// BenchmarkUntouched is what a call pays for a limit that nobody waits for.
func BenchmarkUntouched(b *testing.B) {
	ctx, clk := context.Background(), clock.Of(nil)
	at := clk.Now() + int64(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		New(ctx, clk, at, benched).End()
	}
}

func BenchmarkUntouchedParallel(b *testing.B) {
	ctx, clk := context.Background(), clock.Of(nil)
	at := clk.Now() + int64(time.Hour)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			New(ctx, clk, at, benched).End()
		}
	})
}

// BenchmarkDone is to be compared with BenchmarkDoneByHand.
func BenchmarkDone(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	clk := clock.Of(nil)
	b.ReportAllocs()
	for b.Loop() {
		c := New(ctx, clk, clk.Now()+int64(time.Hour), benched)
		c.Done()
		c.End()
	}
}

func BenchmarkDoneByHand(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		c, cancel := context.WithDeadlineCause(ctx, time.Now().Add(time.Hour), errors.New("limit"))
		c.Done()
		cancel()
	}
}
