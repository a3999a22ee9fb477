package retry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/stretchr/testify/require"
)

func TestReasonsAreSnakeCase(t *testing.T) {
	for reason, want := range map[Reason]string{
		0: "", AttemptsExhausted: "attempts_exhausted", RetryBudgetExhausted: "retry_budget_exhausted",
		RetryDelayExceedsDeadline: "retry_delay_exceeds_deadline", RetryAfterExceedsDeadline: "retry_after_exceeds_deadline",
		RetryAfterExceedsMaximumDelay: "retry_after_exceeds_maximum_delay", MaxElapsedExceeded: "max_elapsed_exceeded",
		Refused: "refused", ContextEnded: "context_ended", UnsafeReplay: "unsafe_replay", 200: "Reason(200)",
	} {
		require.Equal(t, want, reason.String())
	}
}

func TestErrorText(t *testing.T) {
	for want, err := range map[string]*Error{
		"retry: attempts_exhausted after 3 attempts: last failure: a":  {Attempts: 3, Reason: AttemptsExhausted, Last: errA},
		"retry: refused after 1 attempt (wait 5s): b: last failure: a": {Attempts: 1, Reason: Refused, Last: errA, Stop: errB, Wait: 5 * time.Second},
		`retry "x": unsafe_replay after 0 attempts: nothing declares that it may be repeated: want pipeline.Declare or retry.DoSafe with a Safety`: {
			Reason: UnsafeReplay, name: "x"},
		"retry: unsafe_replay after 1 attempt: the declaration has expired, or would before the next attempt: " +
			"want a longer one, or shorter delays: last failure: a": {Attempts: 1, Reason: UnsafeReplay, Last: errA},
		"retry: retry_after_exceeds_deadline after 2 attempts (wait 1m0s): last failure: a": {Attempts: 2, Reason: RetryAfterExceedsDeadline, Last: errA, Wait: time.Minute},
	} {
		require.Equal(t, want, err.Error())
	}
}

func TestNilError(t *testing.T) {
	var err *Error
	require.Equal(t, "retry: nil", err.Error())
	require.Empty(t, err.Unwrap())
	require.NotErrorIs(t, err, ErrBudgetExhausted)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, err.Rejected())
	_, ok := err.RetryAfter()
	require.False(t, ok)
	require.NoError(t, ended.LastFailure(err))
	require.Equal(t, errA, ended.LastFailure(&Error{Last: errA, Stop: errB}), "what a limit around the loop tells")
}

func TestErrorMatchesByItsReason(t *testing.T) {
	for r := range Reason(UnsafeReplay + 1) {
		err := &Error{Reason: r, Last: errA, Stop: errB}
		require.ErrorIs(t, err, errA, "Last is always reachable")
		require.ErrorIs(t, err, errB)
		require.Equal(t, r == RetryDelayExceedsDeadline || r == RetryAfterExceedsDeadline, errors.Is(err, context.DeadlineExceeded), r)
		require.Equal(t, r == RetryBudgetExhausted, errors.Is(err, ErrBudgetExhausted), r)
		require.False(t, err.Rejected())
		require.False(t, refusal.Is(&Error{Reason: r, Stop: &refused{}}), "it overrules what it wraps")
	}
	require.Empty(t, (&Error{}).Unwrap(), "nils left out")
	require.Equal(t, []error{errA}, (&Error{Last: errA}).Unwrap())
	require.Equal(t, []error{errB}, (&Error{Stop: errB}).Unwrap())
}

func TestErrorRetryAfterIsWhatSomebodyAskedFor(t *testing.T) {
	for r := range Reason(UnsafeReplay + 1) {
		wait, ok := (&Error{Reason: r, Wait: time.Second}).RetryAfter()
		want := r == RetryAfterExceedsDeadline || r == RetryAfterExceedsMaximumDelay || r == Refused
		require.Equal(t, want, ok, r)
		if want {
			require.Equal(t, time.Second, wait)
		}
		_, ok = (&Error{Reason: r}).RetryAfter()
		require.False(t, ok, "no wait")
	}
}

func TestTheWaitOfAFullBulkheadIsForHeadersAlone(t *testing.T) {
	full := &fullUp{refused{wait: time.Minute}}
	err := &Error{Attempts: 1, Reason: Refused, Last: errA, Stop: full}
	wait, ok := refusal.RetryAfter(err)
	require.True(t, ok)
	require.Equal(t, time.Minute, wait)
	_, ok = refusal.LowerBound(err)
	require.False(t, ok)
}
