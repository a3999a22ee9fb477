// Command console serves the live console of a simulated shop on loopback, and a panel on which its downstreams can be broken.
//
//	go run ./examples/console            # http://127.0.0.1:8090/
//
// Break the bank on the panel, and watch its circuit in the console: what opens it, what is refused meanwhile, the probes, and how
// it comes back.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8090", "where to listen; asked for by any name but a loopback one, it answers 421")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, listener, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done, and leaves nothing behind.
func run(ctx context.Context, listener net.Listener, out io.Writer) (err error) {
	s, err := newShop()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	s.open(ctx)

	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	_, _ = fmt.Fprintf(out, "The panel:   http://%s/\nThe console: http://%s/console/\n", listener.Addr(), listener.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	_ = s.live.Close() // its streams would keep Shutdown waiting
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
