// Domain shows how a program keeps its own words when something that it depends on is unavailable: OnRejected turns a layer's
// refusal into an error of the program, and an HTTP handler makes a 503 with Retry-After of that, without knowing which
// layer it was.
//
//	go run ./examples/domain
//
// shop.go is all there is to learn. A checkout can go wrong in three ways, and the customer should know which:
// refused (nothing was charged, come back in so many seconds: 503), too late (nobody knows: 504), failed (502).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/budget"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "domain:", err)
		os.Exit(1)
	}
}

// run serves the shop on loopback and lets a customer buy there.
func run(ctx context.Context, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	bank := &bank{}
	server := &http.Server{Handler: newShop(bank.charge), ReadHeaderTimeout: time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	defer serving.Wait()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	return demonstrate(ctx, out, bank, func(order string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+listener.Addr().String()+"/checkout/"+order, nil)
		if err != nil {
			return nil, err
		}
		return client.Do(req)
	})
}

// demonstrate buys something now and then, while the bank has a bad day.
func demonstrate(ctx context.Context, out io.Writer, bank *bank, buy func(order string) (*http.Response, error)) error {
	const layout = "%-34s %-6s %-11s  %s\n"
	fmt.Fprintf(out, layout, "", "status", "Retry-After", "the shop's answer")
	steps := []struct {
		what string
		wait time.Duration // first
		mood mood
	}{
		{"the bank is well", 0, well},
		{"it fails", 0, fails},
		{"it fails again: the circuit opens", 0, fails},
		{"refused, the bank is not asked", 0, fails},
		{"refused, 1 s later", time.Second, fails},
		{"1.6 s after: a probe, and it hangs", 600 * time.Millisecond, hangs},
		{"refused again", 0, well},
		{"1.6 s later: a probe, all is well", 1600 * time.Millisecond, well},
	}
	for i, step := range steps {
		if err := budget.Sleep(ctx, nil, step.wait); err != nil {
			return err
		}
		bank.becomes(step.mood)
		resp, err := buy(fmt.Sprintf("order-%d", i+1))
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		fmt.Fprintf(out, layout, step.what, strconv.Itoa(resp.StatusCode), resp.Header.Get("Retry-After"), strings.TrimSpace(string(body)))
	}
	fmt.Fprintf(out, "\nThe bank was asked %d times for %d checkouts.\n", bank.count(), len(steps))
	return nil
}

// bank is what the shop depends on.
type bank struct {
	mu    sync.Mutex
	mood  mood
	asked int
}

type mood int

const (
	well mood = iota
	fails
	hangs
)

func (b *bank) charge(ctx context.Context, order string) (string, error) {
	switch b.ask() {
	case fails:
		return "", errors.New("bank: internal error")
	case hangs:
		<-ctx.Done()
		return "", ctx.Err()
	default:
		return "receipt for " + order, nil
	}
}

func (b *bank) ask() mood {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	return b.mood
}

func (b *bank) becomes(m mood) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mood = m
}

func (b *bank) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}
