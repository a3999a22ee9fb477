package redisscript

import (
	"context"
	"io"
	"testing"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
)

// What Do costs beyond the round trip: a goroutine, a timer, two contexts. BenchmarkDirect is the floor.
func BenchmarkDo(b *testing.B) {
	server := redistest.Shared(b)
	s := open(b, server.Client(b), Options{Prefix: server.Prefix(b), Timeout: patient})
	c := Call{Op: leaf.OpAdmit, Script: ping}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Do(bg, c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("64", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Do(bg, c); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func BenchmarkDirect(b *testing.B) {
	server := redistest.Shared(b)
	client := server.Client(b)
	key := Key(server.Prefix(b), "kind", "x")
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := eval(bg, client, ping, key, "0", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("64", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := eval(bg, client, ping, key, "0", nil); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// What a worker that waits for calls would save against a goroutine per call: the same command, handed over a channel.
func BenchmarkWorker(b *testing.B) {
	server := redistest.Shared(b)
	client := server.Client(b)
	key := Key(server.Prefix(b), "kind", "x")
	type job struct{ done chan error }
	jobs := make(chan job)
	go func() {
		for j := range jobs {
			_, err := eval(bg, client, ping, key, "0", nil)
			j.done <- err
		}
	}()
	defer close(jobs)
	for b.Loop() {
		j := job{make(chan error, 1)}
		jobs <- j
		if err := <-j.done; err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGoroutine(b *testing.B) {
	server := redistest.Shared(b)
	client := server.Client(b)
	key := Key(server.Prefix(b), "kind", "x")
	for b.Loop() {
		done := make(chan error, 1)
		go func() {
			_, err := eval(bg, client, ping, key, "0", nil)
			done <- err
		}()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// A call while the store's breaker is open.
func BenchmarkOpen(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	s := open(b, client, Options{})
	for range trips {
		s.health.failed(context.Background(), leaf.OpAdmit, io.EOF)
	}
	c := Call{Op: leaf.OpAdmit, Script: ping}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Do(bg, c); err == nil {
			b.Fatal("admitted")
		}
	}
}
