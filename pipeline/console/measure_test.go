package console

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
)

// "off by 6 % at most", against the sorted list of what was counted.
func TestPercentilesAreOffBySixPercentAtMost(t *testing.T) {
	for range 50 {
		var l latencies
		var w window
		var seen counts
		all := make([]time.Duration, 1+rand.IntN(3000))
		for i := range all {
			all[i] = time.Duration(rand.ExpFloat64() * float64(rand.IntN(1000)+1) * float64(time.Millisecond) / float64(1+rand.IntN(1000)))
			l.add(all[i])
		}
		w.push(l.since(&seen))
		slices.Sort(all)
		var p50, p95, p99 time.Duration
		require.True(t, w.percentiles(&p50, &p95, &p99))
		for percent, got := range map[uint64]time.Duration{50: p50, 95: p95, 99: p99} {
			want := all[rank(uint64(len(all)), percent)-1]
			require.InDelta(t, float64(want), float64(got), 0.0626*float64(want)+float64(time.Microsecond)/2+1, "p%d", percent)
		}
	}
}

func TestBucketsCoverEverythingInOrder(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 20*time.Minute; d += d/64 + time.Microsecond {
		b := bucketOf(d)
		require.GreaterOrEqual(t, b, last)
		last = b
	}
	require.Equal(t, bucketCount-1, bucketOf(1<<62))
	require.Zero(t, bucketOf(-time.Second))
	for b := range bucketCount {
		require.Equal(t, b, bucketOf(middle(b)))
	}
}

func TestLatenciesAreForgottenAfterTenSeconds(t *testing.T) {
	var l latencies
	var w window
	var seen counts
	l.add(time.Second)
	var p50, p95, p99 time.Duration
	for range recent {
		w.push(l.since(&seen))
		require.True(t, w.percentiles(&p50, &p95, &p99))
	}
	w.push(l.since(&seen))
	require.False(t, w.percentiles(&p50, &p95, &p99))
}

// "is it getting better": what is told while it is bad, and when it is over.
func TestItSaysWhetherItIsGettingBetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeline.For("p").MustBuild()
		c := started(t, Pipelines(p))
		seconds := func(n, failing int) {
			for range n {
				for i := range 10 {
					if i < failing {
						_ = p.Run(bg, down)
					} else {
						_ = p.Run(bg, succeed)
					}
				}
				after(time.Second)
			}
		}
		at := func() toldRow { return state(t, c).row(t, "p") }
		after(time.Second / 2)
		seconds(40, 0)
		require.Equal(t, "ok", at().Level)
		require.Empty(t, at().Trend)
		seconds(10, 6)
		require.Equal(t, "bad", at().Level)
		require.Equal(t, "60 % of 100 calls failed in 10 s", at().Why[0])
		require.Equal(t, "worse", at().Trend)
		seconds(40, 6)
		require.Equal(t, "steady", at().Trend)
		seconds(10, 2)
		require.Equal(t, "warn", at().Level)
		require.Equal(t, "better", at().Trend)
		seconds(11, 0)
		require.Equal(t, "ok", at().Level)
		after(61 * time.Second)
		require.Equal(t, "idle", at().Level)
	})
}

func TestSecondsKeepFiveMinutes(t *testing.T) {
	var s series
	for i := range uint32(1000) {
		s.push(second{calls: i})
	}
	c := s.curves()
	require.Len(t, c.Calls, kept)
	require.Equal(t, uint32(700), c.Calls[0])
	require.Equal(t, uint32(999), c.Calls[kept-1])
	require.Nil(t, c.P50[0])
	require.Equal(t, uint32(940), s.spark().Calls[0])
	require.Equal(t, sums{calls: 999 + 998}, s.sum(0, 2))
	require.Equal(t, sums{calls: 997 + 996}, s.sum(2, 2))
}
