package budget

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDepositAllocatesNothing(t *testing.T) {
	r, b := MustNewRatio(RatioConfig{}), MustNewTokens(TokenConfig{Capacity: 1})
	require.Zero(t, testing.AllocsPerRun(1000, r.Deposit))
	require.Zero(t, testing.AllocsPerRun(1000, b.Deposit))
}

func TestARefusalAndABalanceAllocateNothing(t *testing.T) {
	r := MustNewRatio(RatioConfig{Ratio: Off, MinPerSecond: 1, Clock: newClock()})
	drain(r)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, ok := r.Reserve(); ok || r.Balance() != 0 {
			t.Error("a token out of nothing")
		}
	}))
}

func BenchmarkFloorTimeSince(b *testing.B) {
	start := time.Now()
	for b.Loop() {
		_ = time.Since(start)
	}
}

func BenchmarkFloorAtomicAdd(b *testing.B) {
	var n atomic.Uint64
	b.Run("serial", func(b *testing.B) {
		for b.Loop() {
			n.Add(1)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
}

func BenchmarkRatioDeposit(b *testing.B) {
	r := MustNewRatio(RatioConfig{})
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Deposit()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r.Deposit()
			}
		})
	})
}

func BenchmarkReserveCancel(b *testing.B) {
	for name, budget := range map[string]Retry{
		"ratio":  MustNewRatio(RatioConfig{}),
		"tokens": MustNewTokens(TokenConfig{Capacity: 1000}),
	} {
		b.Run(name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				token, _ := budget.Reserve()
				token.Cancel()
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					token, _ := budget.Reserve()
					token.Cancel()
				}
			})
		})
	}
}
