package breaking_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/breaking"
	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The whole table is leaf/breaker's TestJudging; here stands one row per branch.
func TestJudge(t *testing.T) {
	err := errors.New("down")
	slow := breaking.Judge{SlowCall: time.Second}
	for _, row := range []struct {
		what string
		j    breaking.Judge
		o    leaf.Outcome
		want breaking.Result
	}{
		{"success", slow, leaf.Outcome{}, breaking.Succeeded},
		{"slow success", slow, leaf.Outcome{Took: time.Second}, breaking.Succeeded | breaking.Slow},
		{"failure", slow, leaf.Outcome{Err: err}, breaking.Failed},
		{"timed out, slowly", slow, leaf.Outcome{Verdict: leaf.TimedOut, Err: err, Took: time.Second}, breaking.Failed | breaking.Slow},
		{"not run", slow, leaf.Outcome{Verdict: leaf.NotRun, Err: err, Took: time.Hour}, breaking.Neutral},
		{"store's refusal", slow, leaf.Outcome{Err: &leaf.StoreError{Op: leaf.OpAdmit, Err: err}}, breaking.Neutral},
		{"cancelled late", slow, leaf.Outcome{Verdict: leaf.CallerCancelled, Err: context.Canceled, Took: time.Second}, breaking.Slow},
		{"expired early", slow, leaf.Outcome{Verdict: leaf.CallerExpired, Err: err, Took: 1, Given: 3}, breaking.Neutral},
		{"expired at half", slow, leaf.Outcome{Verdict: leaf.CallerExpired, Err: err, Took: 2, Given: 3}, breaking.Failed},
		{"expired, never blamed", breaking.Judge{BlameAfter: breaking.Off},
			leaf.Outcome{Verdict: leaf.CallerExpired, Err: err, Took: time.Hour}, breaking.Neutral},
		{"expired, blamed", breaking.Judge{BlameAfter: 5}, leaf.Outcome{Verdict: leaf.CallerExpired, Err: err, Took: 5}, breaking.Failed},
		{"expired, and fine", breaking.Judge{IsFailure: func(error) bool { return false }},
			leaf.Outcome{Verdict: leaf.CallerExpired, Err: err, Took: time.Hour}, breaking.Neutral},
		{"expired late, never blamed", breaking.Judge{BlameAfter: breaking.Off, SlowCall: time.Second},
			leaf.Outcome{Verdict: leaf.CallerExpired, Err: err, Took: time.Second}, breaking.Slow},
		{"expired late, and fine", breaking.Judge{IsFailure: func(error) bool { return false }, SlowCall: time.Second},
			leaf.Outcome{Verdict: leaf.CallerExpired, Err: err, Took: time.Second}, breaking.Slow},
		{"expired late, blamed", slow, leaf.Outcome{Verdict: leaf.CallerExpired, Err: err, Took: time.Second}, breaking.Failed | breaking.Slow},
	} {
		t.Run(row.what, func(t *testing.T) { require.Equal(t, row.want, row.j.Of(row.o)) })
	}
}

// Seed 003: a context's end, of either kind, is never turned into a success: a half-open probe that ran out of time, or that a part of
// fn's own work was cancelled in, would close the circuit.
func TestAContextsEndThatIsNoFailureIsNoSuccess(t *testing.T) {
	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		j := breaking.Judge{IsFailure: func(err error) bool { return err != nil && !errors.Is(err, end) }, SlowCall: time.Second}
		o := leaf.Outcome{Err: fmt.Errorf("read: %w", end)}
		require.Equal(t, breaking.Neutral, j.Of(o), end)
		o.Took = time.Second
		require.Equal(t, breaking.Slow, j.Of(o), end)
		require.Equal(t, breaking.Succeeded, j.Of(leaf.Outcome{}))
		require.Equal(t, breaking.Failed, j.Of(leaf.Outcome{Err: errors.New("other")}))
	}
}
