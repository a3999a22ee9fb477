package leaf_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
	"github.com/stretchr/testify/require"
)

func TestVerdictNames(t *testing.T) {
	names := map[leaf.Verdict]string{
		leaf.Returned: "returned", leaf.TimedOut: "timed_out", leaf.CallerCancelled: "caller_cancelled",
		leaf.CallerExpired: "caller_expired", leaf.Panicked: "panicked", leaf.NotRun: "not_run", leaf.Ignored: "ignored",
		7: "Verdict(7)", 255: "Verdict(255)",
	}
	for v, name := range names {
		require.Equal(t, name, v.String())
	}
	require.Equal(t, leaf.Returned, leaf.Verdict(0), "the zero value")
}

// verdictOf is an error that knows how guards should take it.
type verdictOf leaf.Verdict

func (e verdictOf) Error() string { return "judged " + leaf.Verdict(e).String() }
func (e verdictOf) Judge(o leaf.Outcome) leaf.Outcome {
	o.Verdict = leaf.Verdict(e)
	return o
}

// success is an error that guards should take for none: a 404.
type success struct{}

func (success) Error() string { return "404" }
func (success) Judge(o leaf.Outcome) leaf.Outcome {
	o.Verdict, o.Err = leaf.Returned, nil
	return o
}

// judgedRefusal is a refusal with an opinion of its own.
type judgedRefusal struct {
	refusal
	seen *leaf.Outcome
}

func (e judgedRefusal) Judge(o leaf.Outcome) leaf.Outcome {
	*e.seen = o
	o.Verdict = leaf.TimedOut
	return o
}

// overruled wraps a refusal and says that the callback ran all the same.
type overruled struct{ error }

func (overruled) Rejected() bool  { return false }
func (o overruled) Unwrap() error { return o.error }

// ran is what pipeline.RanError is.
type ran struct{ overruled }

func (ran) NestedRefusal(ended.Asked) {}

func TestJudged(t *testing.T) {
	var seen leaf.Outcome
	for _, row := range []struct {
		what     string
		in, want leaf.Outcome
	}{
		{"a success", leaf.Outcome{Took: 1}, leaf.Outcome{Took: 1}},
		{"a failure", leaf.Outcome{Err: errWork, Took: 1, Given: 2}, leaf.Outcome{Err: errWork, Took: 1, Given: 2}},
		{"a verdict without a judge", leaf.Outcome{Verdict: leaf.CallerExpired, Err: errWork}, leaf.Outcome{Verdict: leaf.CallerExpired, Err: errWork}},
		{"a refusal", leaf.Outcome{Err: refusal{}}, leaf.Outcome{Verdict: leaf.Ignored, Err: refusal{}}},
		{"a refusal in time trouble", leaf.Outcome{Verdict: leaf.TimedOut, Err: refusal{}}, leaf.Outcome{Verdict: leaf.Ignored, Err: refusal{}}},
		{"a 429", leaf.Outcome{Err: verdictOf(leaf.Ignored)}, leaf.Outcome{Verdict: leaf.Ignored, Err: verdictOf(leaf.Ignored)}},
		{"a 404", leaf.Outcome{Err: success{}, Took: 5}, leaf.Outcome{Took: 5}},
		{"a refusal with a say", leaf.Outcome{Err: judgedRefusal{seen: &seen}}, leaf.Outcome{Verdict: leaf.TimedOut, Err: judgedRefusal{seen: &seen}}},
		{"a refusal overruled", leaf.Outcome{Err: overruled{refusal{}}}, leaf.Outcome{Err: overruled{refusal{}}}},
		{"a refusal that came through a pipeline", leaf.Outcome{Err: ran{overruled{refusal{}}}}, leaf.Outcome{Verdict: leaf.Ignored, Err: ran{overruled{refusal{}}}}},
		{"the same in time trouble", leaf.Outcome{Verdict: leaf.CallerExpired, Err: ran{}}, leaf.Outcome{Verdict: leaf.Ignored, Err: ran{}}},
		// Whatever they carry, these two are not about what came out of the callback.
		{"a panic", leaf.Outcome{Verdict: leaf.Panicked, Err: refusal{}}, leaf.Outcome{Verdict: leaf.Panicked, Err: refusal{}}},
		{"a call that did not run", leaf.Outcome{Verdict: leaf.NotRun, Err: refusal{}}, leaf.Outcome{Verdict: leaf.NotRun, Err: refusal{}}},
		{"a judge that did not run", leaf.Outcome{Verdict: leaf.NotRun, Err: success{}}, leaf.Outcome{Verdict: leaf.NotRun, Err: success{}}},
	} {
		require.Equal(t, row.want, row.in.Judged(), row.what)
	}
	require.Equal(t, leaf.Ignored, seen.Verdict, "the judge is asked after the refusal was seen")
}

func TestJudgedLooksInsideErrors(t *testing.T) {
	wrapped := fmt.Errorf("calling: %w", verdictOf(leaf.TimedOut))
	require.Equal(t, leaf.TimedOut, leaf.Outcome{Err: wrapped}.Judged().Verdict)
	joined := errors.Join(errWork, verdictOf(leaf.Ignored))
	require.Equal(t, leaf.Ignored, leaf.Outcome{Err: joined}.Judged().Verdict)

	require.Equal(t, leaf.Ignored, leaf.Outcome{Err: fmt.Errorf("nested: %w", refusal{})}.Judged().Verdict)
	require.Equal(t, leaf.Ignored, leaf.Outcome{Err: errors.Join(refusal{}, refusal{})}.Judged().Verdict)
	require.Equal(t, leaf.Returned, leaf.Outcome{Err: errors.Join(refusal{}, errWork)}.Judged().Verdict,
		"one branch ran")
	require.Equal(t, leaf.Ignored, leaf.Outcome{Err: fmt.Errorf("nested: %w", ran{overruled{refusal{}}})}.Judged().Verdict)
}

func TestJudgedAllocatesNothingOnSuccess(t *testing.T) {
	var o leaf.Outcome
	require.Zero(t, testing.AllocsPerRun(1000, func() { o = o.Judged() }))
}

// chameleon has a word of its own, or is found by errors.As as one that has: however it is made, it is heard.
type chameleon struct{ as bool }

func (chameleon) Error() string { return "chameleon" }

func (c chameleon) As(target any) bool {
	judge, ok := target.(*interface {
		error
		leaf.Judge
	})
	if ok && c.as {
		*judge = plainJudge{}
	}
	return ok && c.as
}

type plainJudge struct{}

func (plainJudge) Error() string                     { return "judge" }
func (plainJudge) Judge(o leaf.Outcome) leaf.Outcome { o.Verdict = leaf.Ignored; return o }

func TestJudgesAreHeardWithoutATreeToWalk(t *testing.T) {
	for err, want := range map[error]leaf.Verdict{
		plainJudge{}: leaf.Ignored, chameleon{as: true}: leaf.Ignored, chameleon{}: leaf.Returned,
	} {
		require.Equal(t, want, leaf.Outcome{Err: err}.Judged().Verdict, "%#v", err)
	}
}
