// Billing is a service between two others, with an outage in the middle of its load: a gateway gives an order 400 ms, billing
// charges it at a bank, and the bank goes down.
//
//	go run ./examples/billing
//
// billing.go is what to copy: one pipeline for what goes out, one for what comes in, a refusal mapped to the domain's own
// error, Retry-After passed on. The time left travels in a header, from hop to hop, by itself.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/fairlead/fairlead/budget"
)

func main() {
	if _, err := run(context.Background(), os.Stdout, 50); err != nil {
		fmt.Fprintln(os.Stderr, "billing:", err)
		os.Exit(1)
	}
}

// phase is a part of the load: what the three hops saw, and what the last customer was told.
type phase struct {
	name       string
	hops       [3]seen
	retryAfter string
}

// run starts three listeners, and sends so many orders before, in and after an outage of the bank.
func run(ctx context.Context, out io.Writer, orders int) ([]phase, error) {
	var host servers
	defer host.close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()

	bank := &bank{charged: map[string]int{}}
	hops := [3]*hop{{name: "gateway"}, {name: "billing"}, {name: "bank"}}
	url := ""
	handlers := []func() http.Handler{
		func() http.Handler { return newGateway(url, base) },
		func() http.Handler { return newBilling(url, base) },
		func() http.Handler { return bank },
	}
	for i := 2; i >= 0; i-- { // each needs the url of the one behind it
		hops[i].answers, hops[i].Handler = map[int]int{}, handlers[i]()
		var err error
		if url, err = host.start(hops[i]); err != nil {
			return nil, err
		}
	}

	client := &http.Client{Transport: base}
	var phases []phase
	for i, name := range []string{"before the outage", "in the outage", "after the outage"} {
		bank.down.Store(i == 1)
		p := phase{name: name}
		for n := range orders {
			after, err := pay(ctx, client, url, fmt.Sprintf("order-%d-%d", i, n))
			if err != nil {
				return nil, err
			}
			p.retryAfter = after
		}
		for i, h := range hops {
			p.hops[i] = h.take()
		}
		p.print(out)
		phases = append(phases, p)
		if wait, err := strconv.Atoi(p.retryAfter); err == nil { // a customer who does as he is told
			if err := budget.Sleep(ctx, nil, time.Duration(wait)*time.Second); err != nil {
				return nil, err
			}
		}
	}
	return phases, nil
}

// pay sends one order.
func pay(ctx context.Context, client *http.Client, url, order string) (retryAfter string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"?order="+order, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.Header.Get("Retry-After"), err
}

func (p phase) print(out io.Writer) {
	fmt.Fprintf(out, "%s\n", p.name)
	for _, s := range p.hops {
		s.print(out)
	}
	if p.retryAfter != "" {
		fmt.Fprintf(out, "  the customer is told to come back in %s s, and does\n", p.retryAfter)
	}
}

// servers are on loopback.
type servers struct {
	running []*http.Server
	serving sync.WaitGroup
}

func (s *servers) start(h http.Handler) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	s.running = append(s.running, server)
	s.serving.Go(func() { _ = server.Serve(listener) })
	return "http://" + listener.Addr().String(), nil
}

func (s *servers) close() {
	for _, server := range s.running {
		_ = server.Close()
	}
	s.serving.Wait()
}
