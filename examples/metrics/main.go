// Metrics shows a program whose pipelines Prometheus scrapes: package otelx tells OpenTelemetry, and OpenTelemetry's exporter
// makes the text on /metrics of it. It is a module of its own, for the exporter's dependencies.
//
//	go run . [address]             # in examples/metrics; default 127.0.0.1:2112
//	curl http://127.0.0.1:2112/metrics
//
// telemetry.go is all there is to learn. Meanwhile a customer buys ten times a second from a bank that has a bad half minute
// in each minute: watch resilience_circuit_breaker_state and rate(resilience_rejections_total[10s]).
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"
)

func main() {
	address := "127.0.0.1:2112"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, address, func(at string) { fmt.Printf("http://%s/metrics (end with ctrl-c)\n", at) }); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// run serves /metrics, and lets a customer buy, until ctx ends.
func run(ctx context.Context, address string, serving func(at string)) (err error) {
	t, err := newTelemetry()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(context.WithoutCancel(ctx))) }()
	shop, err := newShop(t)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", t.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	defer served.Wait()
	defer server.Close()
	serving(listener.Addr().String())

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			shop.bank.down.Store(now.Second() >= 30)
			_ = shop.buy(ctx) // how it went is in the metrics
		}
	}
}
