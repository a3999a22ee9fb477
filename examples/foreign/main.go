// Foreign shows that anything which can be asked before a call and told after it is a guard: golang.org/x/sync/semaphore,
// golang.org/x/time/rate and sony/gobreaker's two-step breaker, each in about ten lines, in one pipeline.
//
//	cd examples/foreign && go run .
//
// refused.go is what they share: an error with the two methods that make it a refusal. guards_test.go runs the conformance
// suite over all three; do the same with yours.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

func main() {
	demonstrate(context.Background(), os.Stdout, newPipeline())
}

// newPipeline puts each where a leaf of this module would be.
func newPipeline() *pipeline.Pipeline {
	return pipeline.For("foreign").
		Breaker(NewBreaker(gobreaker.Settings{
			Timeout:     time.Minute,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 2 },
		})).
		RateLimit(&Rate{rate.NewLimiter(rate.Every(time.Minute), 5)}).
		Bulkhead(&Slots{sem: semaphore.NewWeighted(1)}).
		MustBuild()
}

// demonstrate makes calls until every layer has refused one.
func demonstrate(ctx context.Context, out io.Writer, p *pipeline.Pipeline) {
	line := func(what, ran, by, wait, text string) {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%-34s %-4s %-11s %-12s %s", what, ran, by, wait, text), " "))
	}
	show := func(what string, fn func(context.Context) (int, error)) {
		_, report, err := pipeline.DoDetailed(ctx, p, fn)
		ran, wait, text := "no", "", ""
		if report.Attempts > 0 {
			ran = "yes"
		}
		if d, ok := rejection.RetryAfter(err); ok {
			wait = d.Round(time.Second).String()
		}
		if err != nil {
			text = err.Error()
		}
		line(what, ran, report.Layer, wait, text)
	}
	ok := func(context.Context) (int, error) { return 0, nil }
	fails := func(context.Context) (int, error) { return 0, errors.New("a failure of its own") }

	line("five tokens, one slot", "ran", "refused by", "Retry-After", "error")
	show("call 1", ok)
	show("call 2", func(context.Context) (int, error) {
		show("call 3, while call 2 runs", ok)
		return 0, nil
	})
	show("call 4", ok)
	show("call 5", ok)
	show("call 6: call 3 got its token back", ok)
	show("call 7", ok)

	p = newPipeline()
	fmt.Fprintln(out)
	line("two failures open it", "ran", "refused by", "Retry-After", "error")
	show("call 1", fails)
	show("call 2", fails)
	show("call 3", ok)
}
