package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// caller is one of the two ways to make a charge.
type caller func(ctx context.Context, order string) (Receipt, pipeline.Report, error)

// plain is the call as it is: one attempt, and the http.Client's own time limit.
func plain(client *http.Client, url string) caller {
	client.Timeout = patience
	return func(ctx context.Context, order string) (Receipt, pipeline.Report, error) {
		v, err := charge(ctx, client, url, order)
		return v, pipeline.Report{Attempts: 1}, err
	}
}

// guarded is the same call through a pipeline.
func guarded(client *http.Client, url string, billing *pipeline.Pipeline) caller {
	return func(ctx context.Context, order string) (Receipt, pipeline.Report, error) {
		return pipeline.DoDetailed(ctx, billing, func(ctx context.Context) (Receipt, error) {
			return charge(ctx, client, url, order)
		}, pipeline.Declare(retry.Idempotent(order, patience)))
	}
}

// newClient has a connection for everybody, so that it is the server that decides what is too much.
func newClient(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 1 << 16}}
}

// call is what one user saw.
type call struct {
	phase  int
	began  time.Duration // since the beginning
	took   time.Duration
	report pipeline.Report // of a plain call: one attempt
	err    error
}

// refused says that nothing was sent.
func (c call) refused() bool { return c.report.Disposition == pipeline.Rejected }

// users are many goroutines that start calls at their pace. None waits for an answer before its next call, so both sides get
// the same load, to the call.
func users(ctx context.Context, s script, workers int, do caller) []call {
	var (
		mu    sync.Mutex
		calls []call
		all   sync.WaitGroup
	)
	one := func(phase int, order string) {
		began := s.elapsed()
		_, report, err := do(ctx, order)
		if errors.Is(err, context.Canceled) {
			return // the demonstration was interrupted
		}
		c := call{phase: phase, began: began, took: s.elapsed() - began, report: report, err: err}
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c)
	}
	for user := range workers {
		all.Go(func() {
			due := pace * time.Duration(user) / time.Duration(workers) // evenly spread
			for n := 0; due < s.total; n++ {
				if budget.Sleep(ctx, nil, due-s.elapsed()) != nil {
					return
				}
				phase := s.at(due)
				all.Go(func() { one(phase, fmt.Sprintf("order-%d-%d", user, n)) })
				due += pace / time.Duration(phases[phase].rush)
			}
		})
	}
	all.Wait()
	return calls
}
