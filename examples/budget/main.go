// Budget shows one deadline over a whole tree of calls: a user gives 400 ms, the gateway keeps a part of them for itself, and
// each of three services is told, in a header, what is left for it.
//
//	go run ./examples/budget
//
// hops.go is all there is to learn: budget.FromHeader where a request comes in, budget.WithReserve for what one needs
// oneself, budget.Fits before something that could only be late, and budget.Inject where a request goes out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// patience is the user's.
const patience = 400 * time.Millisecond

// services are asked in this order. The third would be too late, the fourth could not even say so.
var services = []service{
	{"inventory", 80 * time.Millisecond},
	{"prices", 120 * time.Millisecond},
	{"shipping", time.Second},
	{"offers", 10 * time.Millisecond},
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "budget:", err)
		os.Exit(1)
	}
}

// run starts the services and the gateway on loopback, and asks the gateway once.
func run(ctx context.Context, out io.Writer) error {
	var host servers
	defer host.close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	gate := &gateway{client: client}
	for _, s := range services {
		url, err := host.start(s)
		if err != nil {
			return err
		}
		gate.behind = append(gate.behind, target{s, url})
	}
	url, err := host.start(gate)
	if err != nil {
		return err
	}
	a, err := askOnce(ctx, client, url)
	if err != nil {
		return err
	}
	a.print(out)
	return nil
}

// answer is what the user got, and when.
type answer struct {
	took time.Duration
	hops []hop
}

func askOnce(ctx context.Context, client *http.Client, url string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	resp, err := get(ctx, client, url)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	var a answer
	err = json.NewDecoder(resp.Body).Decode(&a.hops)
	a.took = time.Since(began)
	return a, err
}

func (a answer) print(out io.Writer) {
	ms := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	fmt.Fprintf(out, "A user waits %s. The gateway keeps %s of them, each service %s, to answer in time.\n\n", ms(patience), ms(reserve), ms(spare))
	const layout = "%-10s %9s %9s %9s %9s %9s   %s\n"
	fmt.Fprintf(out, layout, "", "needs", "left", "header", "it had", "it took", "answer")
	for _, h := range a.hops {
		switch {
		case h.Status == 0:
			fmt.Fprintf(out, layout, h.Name, ms(h.Needs), ms(h.Left), "-", "-", "-", h.Err)
		case h.Err != "":
			fmt.Fprintf(out, layout, h.Name, ms(h.Needs), ms(h.Left), "?", "?", "?", h.Err)
		default:
			what := "ready"
			if !h.Seen.Ready {
				what = "not ready, said in time"
			}
			fmt.Fprintf(out, layout, h.Name, ms(h.Needs), ms(h.Left), h.Seen.Header, ms(h.Seen.Had), ms(h.Seen.Took),
				fmt.Sprintf("%d, %s", h.Status, what))
		}
	}
	fmt.Fprintf(out, "\nThe user has an answer after %s, made of what was ready.\n", ms(a.took))
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
