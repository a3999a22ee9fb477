package refusal

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/stretchr/testify/require"
)

// says is an error with an opinion, around another.
type says struct {
	rejected bool
	err      error
}

func (s says) Error() string  { return "says" }
func (s says) Rejected() bool { return s.rejected }
func (s says) Unwrap() error  { return s.err }

// ran is what pipeline.RanError is.
type ran struct{ says }

func (ran) NestedRefusal(ended.Asked) {}

// several joins branches and may have nothing else to say.
type several []error

func (s several) Error() string   { return "several" }
func (s several) Unwrap() []error { return s }

// waits is an error with a hint, around another.
type waits struct {
	wait time.Duration
	ok   bool
	err  error
}

func (w waits) Error() string                     { return "waits" }
func (w waits) RetryAfter() (time.Duration, bool) { return w.wait, w.ok }
func (w waits) Unwrap() error                     { return w.err }

var (
	yes      = says{rejected: true}
	no       = says{}
	errPlain = errors.New("plain")
)

func TestIs(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"nil", nil, false},
		{"plain", errPlain, false},
		{"yes", yes, true},
		{"no", no, false},
		{"wrapped", fmt.Errorf("a: %w", fmt.Errorf("b: %w", yes)), true},
		{"the outermost decides: no over yes", says{false, yes}, false},
		{"the outermost decides: yes over no", says{true, no}, true},
		{"the outermost decides: yes over plain", says{true, errPlain}, true},
		{"under a wrapping", fmt.Errorf("a: %w", says{false, yes}), false},
		{"every branch", errors.Join(yes, yes), true},
		{"one branch is not", errors.Join(yes, no), false},
		{"one branch has no opinion", errors.Join(yes, errPlain), false},
		{"a single branch", errors.Join(yes), true},
		{"nil branches do not count", several{nil, yes, nil}, true},
		{"nil branches alone are none", several{nil, nil}, false},
		{"no branch is none", several{}, false},
		{"nested joins", errors.Join(yes, errors.Join(yes, fmt.Errorf("a: %w", yes))), true},
		{"nested joins, one is not", errors.Join(yes, errors.Join(yes, errPlain)), false},
		{"several %w", fmt.Errorf("%w and %w", yes, yes), true},
		{"several %w, one is not", fmt.Errorf("%w and %w", yes, errPlain), false},
		{"an opinion over branches", says{true, errors.Join(no, errPlain)}, true},
		{"wraps nothing", fmt.Errorf("a: %w", error(nil)), false},
	} {
		require.Equal(t, row.want, Is(row.err), row.name)
	}
}

func TestRetryAfter(t *testing.T) {
	hint := func(d time.Duration) error { return waits{wait: d, ok: true} }
	for _, row := range []struct {
		name string
		err  error
		want time.Duration
		ok   bool
	}{
		{"nil", nil, 0, false},
		{"plain", errPlain, 0, false},
		{"hint", hint(3), 3, true},
		{"zero is a hint", hint(0), 0, true},
		{"the longest", hint(math.MaxInt64), math.MaxInt64, true},
		{"negative is none", hint(-1), 0, false},
		{"false is none", waits{wait: 5}, 0, false},
		{"wrapped", fmt.Errorf("a: %w", hint(3)), 3, true},
		{"the outermost", waits{2, true, hint(3)}, 2, true},
		{"the outermost, though shorter", waits{0, true, hint(3)}, 0, true},
		{"false asks what it wraps", waits{5, false, hint(3)}, 3, true},
		{"negative asks what it wraps", waits{-5, true, hint(3)}, 3, true},
		{"the largest of siblings", errors.Join(hint(2), hint(7), hint(3)), 7, true},
		{"siblings without a hint", errors.Join(errPlain, hint(0), nil), 0, true},
		{"no sibling has one", errors.Join(errPlain, hint(-1)), 0, false},
		{"the outermost of each sibling", errors.Join(waits{1, true, hint(9)}, hint(2)), 2, true},
		{"false over siblings", waits{5, false, errors.Join(hint(2), hint(4))}, 4, true},
		{"nested joins", errors.Join(hint(1), errors.Join(hint(8), errPlain)), 8, true},
		{"also of no refusal", says{false, hint(3)}, 3, true},
		{"no branch", several{}, 0, false},
	} {
		got, ok := RetryAfter(row.err)
		require.Equal(t, row.ok, ok, row.name)
		require.Equal(t, row.want, got, row.name)
	}
}

// Both are asked on every failure: neither allocates.
func TestAskingAllocatesNothing(t *testing.T) {
	err := fmt.Errorf("call: %w", errors.Join(yes, waits{3, true, errPlain}))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		Is(err)
		_, _ = RetryAfter(err)
	}))
}

// What a pipeline says of a refusal that came out of its callback is found wherever it is wrapped, and is no refusal.
func TestARefusalThatCameThroughAPipelineIsNestedAndNone(t *testing.T) {
	through := ran{says{false, yes}}
	for _, err := range []error{through, fmt.Errorf("%w", through), errors.Join(errPlain, through), errors.Join(yes, ran{says{false, through}})} {
		require.True(t, Nested(err), "%v", err)
		require.False(t, Is(err))
		require.False(t, Plain(err))
	}
	for _, err := range []error{nil, errPlain, yes, no, says{false, yes}, fmt.Errorf("%w", yes)} {
		require.False(t, Nested(err), "%v", err)
	}
}
