package console

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Latencies are counted in buckets whose width grows with them: eight per doubling, so that a percentile is off by 6 % at most,
// from a microsecond to nine minutes. Their number is fixed: a histogram never grows.
const (
	perDoubling = 8
	doublings   = 27 // the last bucket begins at 2^29 µs
	bucketCount = perDoubling*doublings + 1
)

// latencies is the histogram since the beginning. Safe for concurrent use.
type latencies [bucketCount]atomic.Uint32

func (l *latencies) add(d time.Duration) { l[bucketOf(d)].Add(1) }

// counts is a histogram of some time.
type counts [bucketCount]uint32

// since is what has come to l after last, which becomes what it is now. Differences of a counter that wraps are right.
func (l *latencies) since(last *counts) (c counts) {
	for i := range l {
		now := l[i].Load()
		c[i], last[i] = now-last[i], now
	}
	return c
}

// bucketOf is the bucket of d: its leading bits, the way floating point has them.
func bucketOf(d time.Duration) int {
	us := uint64(max(0, d)) / uint64(time.Microsecond)
	if us < perDoubling { // exact up to 7 µs, in the first three doublings' places
		return int(us)
	}
	power := bits.Len64(us) - 1 // from 3
	i := (power-2)*perDoubling + int(us>>(power-3)) - perDoubling
	return min(i, bucketCount-1)
}

// middle is the time that stands for a bucket.
func middle(bucket int) time.Duration {
	if bucket < perDoubling {
		return time.Duration(bucket)*time.Microsecond + time.Microsecond/2
	}
	power := bucket/perDoubling + 2
	low := uint64(bucket%perDoubling+perDoubling) << (power - 3)
	width := uint64(1) << (power - 3)
	return time.Duration(low)*time.Microsecond + time.Duration(width)*time.Microsecond/2
}

// window is the histograms of the last seconds, and their sum.
type window struct {
	seconds [recent]counts
	next    int
	sum     counts
	total   uint64
}

func (w *window) push(c counts) {
	old := &w.seconds[w.next]
	for i := range c {
		w.sum[i] += c[i] - old[i]
		w.total += uint64(c[i]) - uint64(old[i])
	}
	*old, w.next = c, (w.next+1)%recent
}

// percentiles are those times that so many of 100 calls did not exceed; ok is false without calls.
func (w *window) percentiles(p50, p95, p99 *time.Duration) (ok bool) {
	if w.total == 0 {
		return false
	}
	wanted := [...]struct {
		rank uint64
		to   *time.Duration
	}{{rank(w.total, 50), p50}, {rank(w.total, 95), p95}, {rank(w.total, 99), p99}}
	seen, next := uint64(0), 0
	for i, n := range w.sum {
		for seen += uint64(n); next < len(wanted) && seen >= wanted[next].rank; next++ {
			*wanted[next].to = middle(i)
		}
	}
	return true
}

// rank is the nearest rank of a percentile among n, from 1.
func rank(n, percent uint64) uint64 { return (n*percent + 99) / 100 }
