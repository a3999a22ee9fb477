package slogx_test

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/slogx"
	"github.com/jonboulle/clockwork"
)

// One line per call that is worth one, and one when the circuit opens.
func Example() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "took" {
			return slog.Attr{} // so that the output is always the same; the clock, too, stands still
		}
		return a
	}}))
	clock := clockwork.NewFakeClock()
	charge := pipeline.For("billing").
		Breaker(breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 2, Clock: clock, OnChange: slogx.OnChange(logger)})).
		Observe(slogx.Observer(logger)).MustBuild()
	replies := []error{nil, errors.New("bank: 503"), errors.New("bank: 503"), nil}
	for _, reply := range replies {
		_ = charge.Run(context.Background(), func(context.Context) error { return reply })
	}
	// Output:
	// level=ERROR msg="pipeline: call failed" pipeline=billing attempts=1 error="bank: 503"
	// level=WARN msg="circuit opened" guard=bank from=closed to=open reason="2 failures in a row" seq=1
	// level=ERROR msg="pipeline: call failed" pipeline=billing attempts=1 error="bank: 503"
	// level=WARN msg="pipeline: call rejected" pipeline=billing attempts=0 layer=breaker wait=5s error="breaker \"bank\": open, next probe in 5s"
}
