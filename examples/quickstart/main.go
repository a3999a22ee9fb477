// Quickstart shows what a resilience pipeline does, on a real HTTP failure.
//
//	go run ./examples/quickstart [-seconds 7] [-workers 40]
//
// A server on loopback has a bad day: it gets slow, it fails, it limits, it recovers. The same users meet it twice at the
// same time, once with a plain http.Client and once through a pipeline with every layer there is. A table says what became
// of their calls, and of the server.
//
// pipeline.go is the nesting, in one screen, to copy. client.go is the call, and the error type that tells the pipeline what
// only HTTP knows. The rest is the demonstration.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(start(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// start is main, for the test too. It returns the exit code.
func start(ctx context.Context, args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(problems)
	seconds := flags.Float64("seconds", 7, "how long the server's day lasts, 1 to 60")
	workers := flags.Int("workers", 40, "how many users there are, 1 to 200; each starts 5 calls per second")
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	case !(*seconds >= 1 && *seconds <= 60) || *workers < 1 || *workers > 200 || flags.NArg() > 0:
		fmt.Fprintf(problems, "quickstart: -seconds %v -workers %v %q: out of range\n", *seconds, *workers, flags.Args())
		flags.Usage()
		return 2
	}
	day := time.Duration(*seconds * float64(time.Second))
	show := newScreen(out)
	show.intro(day, *workers)
	result, err := run(ctx, &loopback{}, day, *workers, show.progress)
	if err != nil {
		fmt.Fprintln(problems, "quickstart:", err)
		return 1
	}
	show.result(result)
	return 0
}
