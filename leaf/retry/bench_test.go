package retry

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/fairlead/fairlead/budget"
	"github.com/stretchr/testify/require"
)

func TestALoopIsASmallValue(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Loop{}), uintptr(200))
}

func TestASuccessAllocatesNothing(t *testing.T) {
	deadline, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	pool := budget.MustNewTokens(budget.TokenConfig{Capacity: 1})
	for name, c := range map[string]struct {
		ctx context.Context
		cfg Config
		s   Safety
	}{
		"defaults":   {t.Context(), Config{}, Unsafe},
		"deadline":   {deadline, Config{MaxElapsed: time.Minute}, ReadOnly("get", time.Hour)},
		"strict":     {deadline, Config{Strict: true, Budget: pool, RetryIf: all}, Idempotent("key", time.Hour)},
		"no budget":  {t.Context(), Config{NoBudget: true, OnRetry: func(context.Context, Scheduled) {}}, Unsafe},
		"fake clock": {t.Context(), Config{Clock: newClock(), MaxElapsed: time.Minute}, Unsafe},
	} {
		r := mustNew(t, c.cfg)
		captured := 0
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			_, err := DoSafe(c.ctx, r, c.s, func(context.Context) (int, error) { captured++; return captured, nil })
			if err != nil {
				t.Error(err)
			}
		}), name)
	}
}

func TestARetryAllocatesItsReservationAlone(t *testing.T) {
	r := mustNew(t, Config{Backoff: Immediate, Budget: budget.MustNewTokens(budget.TokenConfig{Capacity: math.MaxInt32})})
	allocs := testing.AllocsPerRun(1000, func() {
		first := true
		_, err := Do(t.Context(), r, func(context.Context) (int, error) {
			if first {
				first = false
				return 0, errA
			}
			return 1, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	require.LessOrEqual(t, allocs, 1.0)
}

func success(context.Context) (int, error) { return 1, nil }

func BenchmarkFloorTimeNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}

func BenchmarkFloorAtomicAdd(b *testing.B) {
	var n atomic.Uint64
	for b.Loop() {
		n.Add(1)
	}
}

func BenchmarkDo(b *testing.B) {
	deadline, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		cfg  Config
	}{
		{"NoBudget", context.Background(), Config{NoBudget: true}},
		{"Defaults", context.Background(), Config{}},
		{"Deadline", deadline, Config{}},
		{"MaxElapsed", context.Background(), Config{MaxElapsed: time.Minute}},
	} {
		r := MustNew(c.cfg)
		b.Run(c.name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Do(c.ctx, r, success)
			}
		})
		b.Run(c.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = Do(c.ctx, r, success)
				}
			})
		})
	}
}

func BenchmarkTwoFailuresThenSuccess(b *testing.B) {
	for name, cfg := range map[string]Config{
		"NoBudget": {NoBudget: true, Backoff: Immediate},
		"Tokens":   {Budget: budget.MustNewTokens(budget.TokenConfig{Capacity: math.MaxInt32}), Backoff: Immediate},
	} {
		r := MustNew(cfg)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				_, _ = Do(context.Background(), r, func(context.Context) (int, error) {
					if n++; n < 3 {
						return 0, errA
					}
					return n, nil
				})
			}
		})
	}
}
