// Bench-redis measures the guards that a fleet shares through Redis beside what they are an alternative to, in one run on one
// machine: a limiter beside redis_rate, a bulkhead beside a lease of two calls, a breaker by the commands that the server
// counts, and each of them while Redis is stopped. It starts redis-servers of its own, and takes about a minute.
//
//	make bench-redis
//	go run . [-for 1s] [-rounds 5] [-write RESULTS.md]       in this directory
//
// It is a module of its own, so that redis_rate stays out of the root's go.mod.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// callers is how many goroutines share one key.
const callers = 64

// options are the flags.
type options struct {
	each   time.Duration // of a measurement
	stop   time.Duration // of Redis
	rounds int
	write  string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(start(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// What go-redis logs of a server that is stopped on purpose would stand in the table.
func init() { logging.Disable() }

// start is main, for the test too. It returns the exit code.
func start(ctx context.Context, args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("bench-redis", flag.ContinueOnError)
	flags.SetOutput(problems)
	var o options
	flags.DurationVar(&o.each, "for", time.Second, "how long each measurement takes, 10ms to 1m")
	flags.DurationVar(&o.stop, "stop", 2*time.Second, "for how long Redis is stopped, 200ms to 10s")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each is measured, in turn, 1 to 15; the median counts")
	flags.StringVar(&o.write, "write", "", "`FILE` for the table, as Markdown")
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	case o.each < 10*time.Millisecond || o.each > time.Minute || o.stop < 200*time.Millisecond || o.stop > 10*time.Second ||
		o.rounds < 1 || o.rounds > 15 || flags.NArg() > 0:
		fmt.Fprintf(problems, "bench-redis: -for %v -stop %v -rounds %d %q: out of range\n", o.each, o.stop, o.rounds, flags.Args())
		flags.Usage()
		return 2
	}
	text, err := measure(ctx, o, problems)
	if err == nil {
		fmt.Fprint(out, text)
		if o.write != "" {
			err = os.WriteFile(o.write, []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(problems, "bench-redis:", err)
		return 1
	}
	return 0
}

// measure measures everything; progress is a line per measurement.
func measure(ctx context.Context, o options, progress io.Writer) (string, error) {
	before := load()
	r := report{options: o}
	for round := range o.rounds {
		for _, c := range contenders {
			fmt.Fprintf(progress, "round %d of %d: %s, %s\n", round+1, o.rounds, c.group, c.name)
			f, err := c.measure(ctx, o.each)
			if err != nil {
				return "", fmt.Errorf("%s, %s: %w", c.group, c.name, err)
			}
			r.add(c, f)
		}
	}
	for _, s := range stopped {
		fmt.Fprintf(progress, "Redis stopped: %s\n", s.name)
		l, err := s.measure(ctx, o.stop)
		if err != nil {
			return "", fmt.Errorf("with Redis stopped: %s: %w", s.name, err)
		}
		r.longest = append(r.longest, l)
	}
	r.machine = machine(before)
	return r.markdown(), nil
}
