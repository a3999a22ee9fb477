package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/examples/redisserver"
)

// How long the bank takes over a call, slow and fast, and how long Redis is stopped.
const (
	slow   = 150 * time.Millisecond // a slot may go round in its process eight times first: 1.2 s, which the chapter outlasts
	fast   = 20 * time.Millisecond
	outage = 2 * time.Second
)

// run sets the scene, tells the story, and prints the summary.
func run(ctx context.Context, o options, out io.Writer) error {
	t := &timeline{out: out, json: o.json, began: time.Now()}
	var server *redisserver.Server // nil = somebody else's
	if o.redis == "" {
		var err error
		server, err = redisserver.Start(ctx)
		if errors.Is(err, redisserver.ErrMissing) {
			return fmt.Errorf("%w; or use one that runs: -redis 127.0.0.1:6379", err)
		}
		if err != nil {
			return err
		}
		defer server.Close()
		o.redis = server.Addr
		t.tell(event{What: "note", Text: fmt.Sprintf("Redis %s at %s", server.Version, server.Addr)})
	}
	b := newBank(slow)
	url, closeBank, err := serve(b)
	if err != nil {
		return err
	}
	defer closeBank()
	s := settings{Redis: o.redis, Bank: url, Timeout: o.timeout, Prefix: "fleet-" + strings.ToLower(rand.Text()[:8])}
	f, err := newFleet(t, b, s)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("no Redis at %s: %w", o.redis, err)
	}
	told := story{fleet: f, server: server}
	told.summary.setting(o.timeout)
	if err := told.tell(ctx); err != nil {
		return err
	}
	t.tell(event{What: "summary", Summary: &told.summary})
	return nil
}

// serve gives the bank an address.
func serve(b *bank) (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: b, ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	return "http://" + listener.Addr().String(), func() { _ = server.Close(); serving.Wait() }, nil
}

type story struct {
	*fleet
	server  *redisserver.Server // nil where Redis is not ours to stop
	quiet   atomic.Bool
	summary summary
}

// tell is the story from its beginning to its end.
func (s *story) tell(ctx context.Context) error {
	for _, name := range names {
		if err := s.join(name); err != nil {
			return err
		}
	}
	sampled, stop := context.WithCancel(ctx)
	var sampling sync.WaitGroup
	sampling.Go(func() { s.sample(sampled, s.quiet.Load) })
	err := s.chapters(ctx)
	stop()
	sampling.Wait()
	if err != nil {
		return err
	}
	err = s.fleet.end()
	lost, _ := s.lost()
	s.summary.LostElsewhere, s.summary.Odd = lost-s.summary.Lost, s.odd
	return err
}

func (s *story) chapters(ctx context.Context) error {
	chapters := []func(context.Context) error{s.oneBulkhead, s.oneKilled, s.oneLimit, s.oneCircuit}
	if s.server != nil {
		chapters = append(chapters, s.redisStops, s.redisAnswers)
	}
	for _, chapter := range chapters {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}
