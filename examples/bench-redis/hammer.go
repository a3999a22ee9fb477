package main

import (
	"context"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/examples/redisserver"
	"github.com/redis/go-redis/v9"
)

// work is what is measured: one decision, or one pair of calls, of one of the callers, which may only fail where the measurement is
// over; how far the limit was exceeded so far; and its end.
type work struct {
	do   func(ctx context.Context, caller int) error
	over func() float64
	end  func() error
}

type begin func(ctx context.Context, client *redis.Client) (work, error)

// figures are of one measurement.
type figures struct {
	perSecond float64
	p50, p99  time.Duration
	trips     float64 // scripts that the server ran, per operation
	busy      float64 // the server's share of one processor
	over      float64 // how far the limit was exceeded; 0 = exact
}

// contender is one way to do a thing.
type contender struct {
	group, name string
	begin       begin
}

// measure lets callers goroutines do it for a while, on a server and with a client of its own.
func (c contender) measure(ctx context.Context, d time.Duration) (f figures, err error) {
	server, err := redisserver.Start(ctx)
	if err != nil {
		return f, err
	}
	defer server.Close()
	version = server.Version
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	w, err := c.begin(ctx, client)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	if err := w.do(ctx, 0); err != nil { // loads the scripts
		return f, err
	}
	before, cpu, err := usage(ctx, client)
	if err != nil {
		return f, err
	}
	times, elapsed, err := hammer(ctx, d, w.do)
	if err != nil {
		return f, err
	}
	after, cpuAfter, err := usage(ctx, client)
	f = figures{
		perSecond: float64(times.n) / elapsed.Seconds(), p50: times.quantile(0.5), p99: times.quantile(0.99),
		trips: float64(after-before) / float64(times.n), busy: (cpuAfter - cpu) / elapsed.Seconds(), over: max(0, w.over()),
	}
	return f, err
}

// hammer does it on every goroutine until the time is over.
func hammer(ctx context.Context, d time.Duration, do func(context.Context, int) error) (all *histogram, elapsed time.Duration, err error) {
	all = &histogram{}
	var mu sync.Mutex
	var running sync.WaitGroup
	began := time.Now()
	for caller := range callers {
		running.Go(func() {
			ctx, cancel := context.WithCancel(ctx) // of its own, as a request has
			defer cancel()
			mine := &histogram{}
			var failed error
			for at := time.Now(); failed == nil && at.Sub(began) < d; {
				failed = do(ctx, caller)
				now := time.Now()
				mine.add(now.Sub(at))
				at = now
			}
			mu.Lock()
			defer mu.Unlock()
			all.merge(mine)
			err = errors.Join(err, failed)
		})
	}
	running.Wait()
	return all, time.Since(began), err
}

// usage is how many scripts the server has run so far, each of which is a round trip, and its processor time in seconds.
func usage(ctx context.Context, client *redis.Client) (scripts int, cpu float64, err error) {
	info, err := client.Info(ctx, "commandstats", "cpu").Result()
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_user:", "used_cpu_sys:"} {
			if seconds, ok := strings.CutPrefix(line, name); ok {
				s, bad := strconv.ParseFloat(strings.TrimSpace(seconds), 64)
				if bad != nil {
					return 0, 0, bad
				}
				cpu += s
			}
		}
		if rest, ok := strings.CutPrefix(line, "cmdstat_eval"); ok {
			_, rest, _ = strings.Cut(rest, "calls=")
			digits, _, _ := strings.Cut(rest, ",")
			n, bad := strconv.Atoi(digits)
			if bad != nil {
				return 0, 0, bad
			}
			scripts += n
		}
	}
	return scripts, cpu, err
}

// histogram counts durations in buckets that are 1/16 of their power of two wide: 6 % at most.
type histogram struct {
	n       int
	longest time.Duration
	buckets [16 * 64]int
}

func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 16 {
		return int(v)
	}
	shift := bits.Len64(v) - 5
	return 16*shift + int(v>>shift)
}

// upper is the longest duration in a bucket.
func upper(b int) time.Duration {
	if b < 32 {
		return time.Duration(b)
	}
	shift := b/16 - 1
	return time.Duration((b%16+17)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.n++
	h.longest = max(h.longest, d)
	h.buckets[bucket(d)]++
}

func (h *histogram) merge(o *histogram) {
	h.n += o.n
	h.longest = max(h.longest, o.longest)
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}

// quantile is no less than the share q of all durations, and at most 6 % too much.
func (h *histogram) quantile(q float64) time.Duration {
	left := int(q * float64(h.n))
	for i, n := range h.buckets {
		if left -= n; left < 0 {
			return min(upper(i), h.longest)
		}
	}
	return h.longest
}
