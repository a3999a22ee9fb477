package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

var errDown = errors.New("down")

func down(context.Context) error { return errDown }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func threeTries() *retry.Retry {
	return retry.MustNew(retry.Config{MaxAttempts: 3, Backoff: retry.Immediate})
}

func limit(d time.Duration) *timeout.Timeout {
	return timeout.MustNew(timeout.Config{Limit: d})
}

// Each row is one of the README's table of which error comes out when.
func TestExplainTellsEachKindOfError(t *testing.T) {
	open := breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 1, OpenFor: time.Minute})
	opens := func(ctx context.Context) error { return pipeline.For("once").Breaker(open).MustBuild().Run(ctx, down) }
	full := pipeline.For("inner").Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "db", MaxConcurrent: 1})).MustBuild()
	for _, c := range []struct {
		when string
		p    pipeline.Builder
		fn   func(context.Context) error
		want string
	}{
		{"a failure without a retry", pipeline.For("p"), down, "its own failure, or its context's: down"},
		{"a failure that is not retried", pipeline.For("p").Retry(threeTries()),
			func(context.Context) error { return retry.Permanent(errDown) }, "its own failure, or its context's: down"},
		{"out of attempts", pipeline.For("p").Retry(threeTries()), down,
			"ran 3 times, then attempts_exhausted; last failure: down"},
		{"the attempt timeout", pipeline.For("p").AttemptTimeout(limit(time.Second)), hang,
			"ran, and a limit of 1s of ours cut it"},
		{"the attempt timeout, each time", pipeline.For("p").Retry(threeTries()).AttemptTimeout(limit(time.Second)), hang,
			"ran 3 times, then attempts_exhausted; last failure: timeout: limit of 1s reached"},
		{"the total timeout", pipeline.For("p").Timeout(limit(2 * time.Second)), hang,
			"ran, and a limit of 2s of ours cut it"},
		{"a refusal from further in", pipeline.For("p"), func(ctx context.Context) error {
			return full.Run(ctx, func(ctx context.Context) error { return full.Run(ctx, down) })
		}, `ran, and met a refusal further on: bulkhead "db": full (1 at once)`},
	} {
		synctest.Test(t, func(t *testing.T) {
			assert.Equal(t, c.want, explain(c.p.MustBuild().Run(t.Context(), c.fn)), c.when)
		})
	}

	synctest.Test(t, func(t *testing.T) {
		assert.Error(t, opens(t.Context()))
		assert.Equal(t, "never ran: may be re-queued, in 1m0s", explain(opens(t.Context())), "an open circuit")
	})
	synctest.Test(t, func(t *testing.T) {
		trips := breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 2, OpenFor: time.Minute})
		p := pipeline.For("p").Retry(threeTries()).Breaker(trips).MustBuild()
		assert.Equal(t, "ran 2 times, then refused; last failure: down", explain(p.Run(t.Context(), down)), "cut short by the circuit")
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := pipeline.For("p").Retry(threeTries()).MustBuild()
		assert.Equal(t, "ran 1 times, then context_ended; last failure: context deadline exceeded", explain(p.Run(ctx, hang)), "the caller's deadline")
	})
}
