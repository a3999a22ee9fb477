package redisbulkhead

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
)

const (
	benchCalls = 64
	benchSlots = 8
)

// many runs n pairs on benchCalls goroutines, and reports pairs and store calls.
func many(b *testing.B, s *redistest.Server, pair func() error) {
	before := s.Calls(b, "evalsha", "eval")
	var left sync.WaitGroup
	jobs := make(chan int, b.N)
	for range b.N {
		jobs <- 1
	}
	close(jobs)
	b.ResetTimer()
	for range benchCalls {
		left.Go(func() {
			for range jobs {
				if err := pair(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	left.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	b.ReportMetric(float64(s.Calls(b, "evalsha", "eval")-before)/float64(b.N), "calls/pair")
}

// BenchmarkPairs: 64 goroutines on 8 slots, each takes one and gives it back.
func BenchmarkPairs(b *testing.B) {
	s := redistest.Start(b)
	g := open(b, s.Client(b), waiting(benchSlots), Options{Timeout: calm})
	many(b, s, func() error {
		p, err := g.Acquire(bg)
		if err != nil {
			return err
		}
		return p.Settle(bg, leaf.Outcome{})
	})
}

// BenchmarkPairsOfTwoInstances is the same with two instances that wait for one another.
func BenchmarkPairsOfTwoInstances(b *testing.B) {
	s := redistest.Start(b)
	two := [2]*Bulkhead{open(b, s.Client(b), waiting(benchSlots), Options{Timeout: calm}), open(b, s.Client(b), waiting(benchSlots), Options{Timeout: calm})}
	var next atomic.Int64
	many(b, s, func() error {
		p, err := two[next.Add(1)%2].Acquire(bg)
		if err != nil {
			return err
		}
		return p.Settle(bg, leaf.Outcome{})
	})
}

// BenchmarkPlainLease is what is usually written: a script that takes, one that gives back, and a poll while it is full.
func BenchmarkPlainLease(b *testing.B) {
	s := redistest.Start(b)
	client := s.Client(b)
	take := redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + 60000000, ARGV[2])
redis.call('PEXPIRE', KEYS[1], 60000)
return 1`)
	give := redis.NewScript(`return redis.call('ZREM', KEYS[1], ARGV[1])`)
	many(b, s, func() error {
		token := random()
		for {
			ok, err := take.Run(bg, client, []string{"plain"}, benchSlots, token).Int()
			if err != nil {
				return err
			}
			if ok == 1 {
				break
			}
			<-time.After(time.Duration((0.5 + rand.Float64()) * float64(firstPoll)))
		}
		return give.Run(bg, client, []string{"plain"}, token).Err()
	})
}

// BenchmarkFreePair: nobody waits, one goroutine.
func BenchmarkFreePair(b *testing.B) {
	s := redistest.Start(b)
	g := open(b, s.Client(b), waiting(benchSlots), Options{Timeout: calm})
	for b.Loop() {
		p, err := g.Acquire(bg)
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Settle(bg, leaf.Outcome{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStoreStopped: the server does not answer and the policy is FailLocal.
func BenchmarkStoreStopped(b *testing.B) {
	s := redistest.Start(b)
	g := open(b, s.Client(b), waiting(benchSlots), Options{})
	s.Pause(b)
	for range 6 { // the store's breaker opens
		if p, err := g.Acquire(bg); err == nil {
			_ = p.Settle(bg, leaf.Outcome{})
		}
	}
	for b.Loop() {
		p, err := g.Acquire(bg)
		if err != nil {
			b.Fatal(err)
		}
		_ = p.Settle(bg, leaf.Outcome{})
	}
	b.StopTimer()
	s.Resume(b)
}
