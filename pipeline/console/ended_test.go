package console

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// asked is a failure by which the other side asks for a wait.
type asked struct{ wait time.Duration }

func (a asked) Error() string                     { return "slow down" }
func (a asked) RetryAfter() (time.Duration, bool) { return a.wait, true }

func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// patient tries again after a second, three runs at most.
func patient() *retry.Retry {
	return retry.MustNew(retry.Config{Backoff: retry.Constant(time.Second), Jitter: retry.None, NoBudget: true})
}

// called is what the console counts of one call, and of the time after it.
func called(t *testing.T, p *pipeline.Pipeline, call func()) totals {
	c := started(t, Pipelines(p))
	call()
	after(10 * time.Second)
	r := state(t, c).row(t, p.Name())
	require.Zero(t, r.InFlight)
	return r.Totals
}

// How a call ended is what the pipeline says of it: its error alone looks alike for a caller who left and a callback that gave up.
func TestHowACallEndedIsCountedAsThePipelineSays(t *testing.T) {
	total := func() *timeout.Timeout { return timeout.MustNew(timeout.Config{Limit: time.Second}) }
	for name, row := range map[string]struct {
		b    pipeline.Builder
		left time.Duration // until the caller leaves; 0 = stays
		fn   func(context.Context) error
		want totals
	}{
		"a failure that wraps context.Canceled, of a caller who stays, is a failure": {
			b: pipeline.For("p"), fn: func(context.Context) error { return fmt.Errorf("gave up: %w", context.Canceled) },
			want: totals{Calls: 1, Failed: 1, Attempts: 1, Broken: 1}},
		"a failure that wraps context.DeadlineExceeded is a failure": {
			b: pipeline.For("p"), fn: func(context.Context) error { return fmt.Errorf("gave up: %w", context.DeadlineExceeded) },
			want: totals{Calls: 1, Failed: 1, Attempts: 1, Broken: 1}},
		"a refusal of something further on is a failure": {
			b: pipeline.For("p"), fn: func(context.Context) error { return &bulkhead.FullError{Name: "theirs", Max: 1} },
			want: totals{Calls: 1, Failed: 1, Attempts: 1, Broken: 1}},
		"a caller who cancels has left": {
			b: pipeline.For("p"), left: time.Second, fn: hang, want: totals{Calls: 1, Left: 1, Attempts: 1, Broken: 1}},
		"also where fn answers with an error of its own": {
			b: pipeline.For("p"), left: time.Second, fn: func(ctx context.Context) error { <-ctx.Done(); return errDown },
			want: totals{Calls: 1, Left: 1, Attempts: 1, Broken: 1}},
		"a total timeout is a failure": {
			b: pipeline.For("p").Timeout(total()), fn: hang, want: totals{Calls: 1, Failed: 1, Attempts: 1, Broken: 1}},
		"a wait that does not fit is a failure": {
			b: pipeline.For("p").Retry(patient()), fn: func(context.Context) error { return asked{time.Hour} },
			want: totals{Calls: 1, Failed: 1, Attempts: 1, Broken: 1}},
		"a success is none of these": {b: pipeline.For("p"), fn: succeed, want: totals{Calls: 1, Attempts: 1}},
	} {
		bubble(name, t, func(t *testing.T) {
			p := row.b.MustBuild()
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			if row.left > 0 {
				defer time.AfterFunc(row.left, cancel).Stop()
			}
			require.Equal(t, row.want, called(t, p, func() { _ = p.Run(ctx, row.fn) }))
		})
	}
	bubble("a call that a guard refused was refused, whatever OnRejected makes of it", t, func(t *testing.T) {
		b := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		p := pipeline.For("p").Bulkhead(b).OnRejected(func(context.Context, error) error { return errDown }).MustBuild()
		require.Equal(t, totals{Calls: 2, Refused: 1, Attempts: 1}, called(t, p, func() {
			require.NoError(t, p.Run(bg, func(context.Context) error {
				require.ErrorIs(t, p.Run(bg, succeed), errDown)
				return nil
			}))
		}))
	})
	bubble("a panic is a failure", t, func(t *testing.T) {
		p := pipeline.For("p").MustBuild()
		require.Equal(t, totals{Calls: 1, Failed: 1, Attempts: 1, Broken: 1}, called(t, p, func() {
			require.Panics(t, func() { _ = p.Run(bg, func(context.Context) error { panic("boom") }) })
		}))
	})
}

// Retries are runs of fn beyond the first: what was sent again, not what was intended.
func TestRetriesAreRunsBeyondTheFirst(t *testing.T) {
	retries := func(t *testing.T, want uint64, b pipeline.Builder, run func(p *pipeline.Pipeline)) {
		t.Helper()
		p := b.MustBuild()
		require.Equal(t, want, called(t, p, func() { run(p) }).Retries)
	}
	bubble("three runs are two retries", t, func(t *testing.T) {
		retries(t, 2, pipeline.For("p").Retry(patient()), func(p *pipeline.Pipeline) { require.ErrorIs(t, p.Run(bg, down), errDown) })
	})
	bubble("a retry whose backoff the caller cancels was not made", t, func(t *testing.T) {
		retries(t, 0, pipeline.For("p").Retry(patient()), func(p *pipeline.Pipeline) {
			ctx, cancel := context.WithCancel(bg)
			defer time.AfterFunc(time.Second/2, cancel).Stop()
			require.ErrorIs(t, p.Run(ctx, down), context.Canceled)
		})
	})
	bubble("refused tries of an opt-in are no retries of fn", t, func(t *testing.T) {
		full := bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})
		retries(t, 0, pipeline.For("p").Retry(patient()).Bulkhead(full).RetryOnBulkheadFull(), func(p *pipeline.Pipeline) {
			permit, err := full.Acquire(bg)
			require.NoError(t, err)
			require.ErrorIs(t, p.Run(bg, succeed), bulkhead.ErrFull)
			require.NoError(t, permit.Settle(bg, leaf.Outcome{}))
		})
	})
	bubble("a cooldown that moves on while it is waited for makes one retry, not two", t, func(t *testing.T) {
		cool := cooldown.MustNew(cooldown.Config{})
		retries(t, 1, pipeline.For("p").Retry(patient()).Cooldown(cool), func(p *pipeline.Pipeline) {
			runs := 0
			defer time.AfterFunc(time.Second/2, func() { cool.Hint(bg, 3*time.Second) }).Stop() // while the backoff is slept
			require.NoError(t, p.Run(bg, func(context.Context) error {
				if runs++; runs == 1 {
					return errDown
				}
				return nil
			}))
			require.Equal(t, 2, runs)
		})
	})
}
