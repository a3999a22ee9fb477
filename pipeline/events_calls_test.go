package pipeline_test

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// A detached attempt that the call gave up on is told at the deadline; what it does later is no event.
func TestEventsOfADetachedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := listen()
		p := pipeline.For("p").AttemptTimeout(limitOf(time.Second)).Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 1})).
			Observe(heard.observe).MustBuild()
		_, err := pipeline.DoDetached(t.Context(), p, func(context.Context) (int, error) { <-time.After(time.Minute); return 1, nil },
			pipeline.Detached[int]{Late: func(int, error) { heard.note("late") }})
		<-time.After(time.Hour)
		synctest.Wait()
		requireLines(t, []string{"0s call_started", "1s attempt_finished #1 took 1s: timeout: limit of 1s reached",
			"1s call_finished took 1s: …", "1m0s late"}, heard.lines, err)
	})
}

// A panic and runtime.Goexit leave the attempt's end and the call's, wherever they came from; while fn ran, both.
func TestEventsOfWhatUnwinds(t *testing.T) {
	exits := map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit}
	for name, exit := range exits {
		for where, want := range map[string][]string{
			"fn":      {"call_started", "attempt_finished #1: " + pipeline.ErrPanicked.Error(), "call_finished: " + pipeline.ErrPanicked.Error()},
			"acquire": {"call_started", "call_finished: " + pipeline.ErrPanicked.Error()},
			"onretry": {"call_started", "attempt_finished #1: down", "call_finished: " + pipeline.ErrPanicked.Error()},
		} {
			t.Run(name+" in "+where, func(t *testing.T) {
				at := func(here string) {
					if here == where {
						exit()
					}
				}
				var lines []string
				r := steady(func(c *retry.Config) { c.OnRetry = func(context.Context, retry.Scheduled) { at("onretry") } })
				p := pipeline.For("p").Retry(r).With(&rule{acquire: func(context.Context) error { at("acquire"); return nil }}).
					Observe(func(_ context.Context, e pipeline.Event) { e.Took = 0; lines = append(lines, line(e)) }).MustBuild()
				var done sync.WaitGroup
				done.Go(func() {
					defer func() { _ = recover() }()
					_ = p.Run(t.Context(), func(context.Context) error { at("fn"); return errDown })
				})
				done.Wait()
				require.Equal(t, want, lines)
			})
		}
	}
}

// Event.Time is on the pipeline's clock.
func TestEventsAreOnThePipelinesClock(t *testing.T) {
	fake := clockwork.NewFakeClockAt(time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC))
	limit := timeout.MustNew(timeout.Config{Limit: time.Hour, Clock: fake})
	var at []time.Time
	var took []time.Duration
	p := pipeline.For("p").Timeout(limit).Observe(func(_ context.Context, e pipeline.Event) {
		at, took = append(at, e.Time), append(took, e.Took)
	}).MustBuild()
	began := fake.Now()
	require.NoError(t, p.Run(t.Context(), func(context.Context) error { fake.Advance(3 * time.Second); return nil }))
	require.Len(t, at, 3)
	require.True(t, at[0].Equal(began), at[0])
	require.True(t, at[1].Equal(began.Add(3*time.Second)), at[1])
	require.True(t, at[2].Equal(began.Add(3*time.Second)), at[2])
	require.Equal(t, []time.Duration{0, 3 * time.Second, 3 * time.Second}, took)
}

type callKey struct{}

// Events are in order per call, whatever other calls do: one start, then attempts, refusals and retries, at most one stop, one
// end; their numbers and times rise.
func TestEventsAreInOrderPerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 200
		heard := make([][]pipeline.Event, calls)
		p := pipeline.For("p").
			Retry(retry.MustNew(retry.Config{Backoff: retry.Constant(time.Millisecond), NoBudget: true})).
			Breaker(breaker.MustNew(breaker.Config{Consecutive: 40, OpenFor: 3 * time.Millisecond})).
			Bulkhead(bulkhead.MustNew(bulkhead.Config{MaxConcurrent: 20, MaxWait: 2 * time.Millisecond})).RetryOnBulkheadFull().
			AttemptTimeout(limitOf(2 * time.Millisecond)).
			Observe(func(ctx context.Context, e pipeline.Event) {
				n := ctx.Value(callKey{}).(int) // of this call alone: no lock
				heard[n] = append(heard[n], e)
			}).MustBuild()
		var done sync.WaitGroup
		for n := range calls {
			done.Go(func() {
				<-time.After(time.Duration(n%7) * time.Millisecond)
				_ = p.Run(context.WithValue(t.Context(), callKey{}, n), func(ctx context.Context) error {
					if n%3 == 0 {
						<-ctx.Done()
						return ctx.Err()
					}
					<-time.After(time.Duration(n%5) * 300 * time.Microsecond)
					if n%2 == 0 {
						return errDown
					}
					return nil
				}, pipeline.OperationID(fmt.Sprint(n)))
			})
		}
		done.Wait()
		kinds := map[pipeline.Kind]int{}
		for n, events := range heard {
			requireGrammar(t, n, events)
			for _, e := range events {
				kinds[e.Kind]++
			}
		}
		for k := pipeline.CallStarted; k <= pipeline.GuardRejected; k++ {
			require.NotZero(t, kinds[k], k)
		}
	})
}

// callGrammar is the order of one call's events, by their first letters.
var callGrammar = regexp.MustCompile(`^s((a|r)+n)*(a|r)*(x)?f$`)

func requireGrammar(t *testing.T, n int, events []pipeline.Event) {
	t.Helper()
	letters := map[pipeline.Kind]string{pipeline.CallStarted: "s", pipeline.AttemptFinished: "a", pipeline.GuardRejected: "r",
		pipeline.RetryScheduled: "n", pipeline.RetryStopped: "x", pipeline.CallFinished: "f"}
	var word strings.Builder
	attempts := 0
	for i, e := range events {
		word.WriteString(letters[e.Kind])
		require.Equal(t, "p", e.Pipeline)
		require.Equal(t, fmt.Sprint(n), e.Operation)
		if i > 0 {
			require.False(t, e.Time.Before(events[i-1].Time), "call %d: %v", n, events)
		}
		if e.Kind == pipeline.AttemptFinished {
			attempts++
			require.Equal(t, attempts, e.Attempt)
		}
	}
	require.Regexp(t, callGrammar, word.String(), "call %d", n)
}
