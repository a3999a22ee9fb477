// Fleet shows three processes that share one bulkhead, one limit and one circuit breaker through Redis, and what becomes of them
// when one of the processes is killed, when the service behind them fails, and when Redis itself stops answering.
//
//	go run ./examples/fleet [-redis ADDR] [-timeout 50ms] [-json]
//
// It starts a redis-server of its own, and itself three times more. They call a bank, which is in this process and counts who is
// inside and how fast they come: what it saw is what the summary says, not what the guards say of themselves. About 20 s.
//
// share.go is all there is to learn: the pipeline that every process builds, and what it tells its operator. story.go is what
// happens to them; bank.go, worker.go and process.go are the scenery.
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

func main() {
	if isWorker() {
		os.Exit(work())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(start(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// What go-redis logs of a server that is stopped on purpose would stand between the lines.
func init() { logging.Disable() }

// options are the flags.
type options struct {
	redis   string
	timeout time.Duration
	json    bool
}

// start is main, for the test too. It returns the exit code.
func start(ctx context.Context, args []string, out, problems io.Writer) int {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(problems)
	var o options
	flags.StringVar(&o.redis, "redis", "", "`ADDR` of a Redis that runs already; it is not stopped, so that there is no outage to see")
	flags.DurationVar(&o.timeout, "timeout", 50*time.Millisecond, "how long a guard waits for Redis, 10ms to 500ms")
	flags.BoolVar(&o.json, "json", false, "one JSON object per line instead of the timeline; the last is the summary")
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	case o.timeout < 10*time.Millisecond || o.timeout > 500*time.Millisecond || flags.NArg() > 0:
		fmt.Fprintf(problems, "fleet: -timeout %v %q: out of range\n", o.timeout, flags.Args())
		flags.Usage()
		return 2
	}
	if err := run(ctx, o, out); err != nil {
		fmt.Fprintln(problems, "fleet:", err)
		return 1
	}
	return 0
}
