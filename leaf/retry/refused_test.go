package retry

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/stretchr/testify/require"
)

// A full bulkhead's wait is an upper bound, for headers only: as the stop of a refusal that came out of a later run, or of a guard,
// it is no wait of the loop's, and nobody further out waits for it.
func TestTheUpperBoundOfALaterRefusalIsNoWait(t *testing.T) {
	ctx := t.Context()
	full := &fullUp{refused{time.Hour}}
	for name, stops := range map[string]func(l *Loop) error{
		"out of fn":  func(l *Loop) error { l.Sent(); return l.Judge(ctx, full) },
		"of a guard": func(l *Loop) error { return l.Refused(ctx, full, false) },
	} {
		l, err := mustNew(t, Config{}).Begin(ctx, Unsafe)
		require.NoError(t, err)
		l.Sent()
		require.NoError(t, l.Judge(ctx, errA))
		stop := stopOf(t, stops(&l))
		require.Equal(t, Refused, stop.Reason, name)
		require.Zero(t, stop.Wait, name)
		_, own := stop.RetryAfter()
		require.False(t, own, name)
		_, lower := refusal.LowerBound(stop)
		require.False(t, lower, name)
		wait, ok := refusal.RetryAfter(stop) // for headers
		require.True(t, ok, name)
		require.Equal(t, time.Hour, wait, name)
		l.End()
	}
}

// The same through an outer loop that retries retries: it goes by its own delay.
func TestALoopAroundALoopDoesNotWaitForAnUpperBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mustNew(t, Config{Backoff: Immediate, NoBudget: true})
		outer := mustNew(t, Config{MaxAttempts: 2, Backoff: Constant(time.Second), Jitter: None, RetryNested: true})
		began := time.Now()
		_, err := Do(t.Context(), outer, func(ctx context.Context) (int, error) {
			runs := 0
			return Do(ctx, inner, func(context.Context) (int, error) {
				if runs++; runs == 1 {
					return 0, errA
				}
				return 0, &fullUp{refused{time.Minute}}
			})
		})
		require.ErrorIs(t, err, errA)
		require.Equal(t, AttemptsExhausted, stopOf(t, err).Reason)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// Never retried: a rejection of any pipeline, also one that came through others in between. They say that something ran, so it is
// unchanged after an earlier run as well.
func TestARejectionThatCameThroughAPipelineIsNeverRetried(t *testing.T) {
	nested := &ran{&refused{time.Minute}}
	for name, script := range map[string][]error{"at once": {nested}, "later": {errA, nested}, "wrapped": {fmt.Errorf("calling: %w", nested)}} {
		for _, all := range []bool{false, true} {
			c := calls{script: script}
			r := mustNew(t, Config{Backoff: Immediate, RetryNested: all, RetryIf: func(error) bool { return true }})
			_, err := Do(t.Context(), r, c.fn)
			require.Equal(t, script[len(script)-1], err, name)
			require.Len(t, c.at, len(script), name)
		}
	}
}
