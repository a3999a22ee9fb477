package rejection_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/rejection"
)

// The trees are tested with internal/refusal; here, that both functions are what they say.
func TestIsAndRetryAfter(t *testing.T) {
	refused := &refusal{rejected: true, wait: 3 * time.Second, hint: true}
	require.True(t, rejection.Is(fmt.Errorf("call: %w", refused)))
	require.False(t, rejection.Is(&refusal{err: refused}), "the outermost opinion decides")
	require.False(t, rejection.Is(errors.Join(refused, errors.New("other"))))
	require.False(t, rejection.Is(nil))
	wait, ok := rejection.RetryAfter(&refusal{err: refused})
	require.True(t, ok, "also of an error that is no rejection")
	require.Equal(t, 3*time.Second, wait)
	_, ok = rejection.RetryAfter(nil)
	require.False(t, ok)
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		math.MinInt64: 1, -time.Second: 1, -1: 1, 0: 1, 1: 1, time.Second - 1: 1, time.Second: 1, time.Second + 1: 2,
		1500 * time.Millisecond: 2, 2 * time.Second: 2, 59*time.Minute + 1: 3541, math.MaxInt64: 9223372037,
	} {
		require.Equal(t, int(min(want, math.MaxInt)), rejection.Seconds(d), "%d", int64(d)) // an int may have 32 bits
	}
}

func TestSetHeader(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string // "" = untouched
	}{
		{&refusal{rejected: true, wait: 2100 * time.Millisecond, hint: true}, "3"},
		{&refusal{wait: 0, hint: true}, "1"},
		{fmt.Errorf("call: %w", &refusal{wait: time.Minute, hint: true}), "60"},
		{&refusal{rejected: true, wait: -1, hint: true}, ""},
		{&refusal{rejected: true, wait: time.Hour}, ""},
		{errors.New("other"), ""},
		{nil, ""},
	} {
		h := http.Header{"Retry-After": {"before"}, "X-Other": {"kept"}}
		require.Equal(t, row.want != "", rejection.SetHeader(h, row.err))
		want := row.want
		if want == "" {
			want = "before"
		}
		require.Equal(t, http.Header{"Retry-After": {want}, "X-Other": {"kept"}}, h)
	}
}

func TestStatus(t *testing.T) {
	other := errors.New("other")
	for _, row := range []struct {
		name string
		err  error
		want int
	}{
		{"nil", nil, 0},
		{"other", other, 0},
		{"cancelled", context.Canceled, 0},
		{"refusal", &refusal{rejected: true}, 503},
		{"wrapped refusal", fmt.Errorf("call: %w", &refusal{rejected: true}), 503},
		{"refusal around a deadline", &refusal{rejected: true, err: context.DeadlineExceeded}, 503},
		{"overruled refusal", &refusal{err: &refusal{rejected: true}}, 0},
		{"overruled refusal around a deadline", &refusal{err: context.DeadlineExceeded}, 504},
		{"deadline", context.DeadlineExceeded, 504},
		{"wrapped deadline", fmt.Errorf("call: %w", context.DeadlineExceeded), 504},
		{"i/o deadline", os.ErrDeadlineExceeded, 504},
		{"timeout", timed{timeout: true}, 504},
		{"no timeout", timed{}, 0},
		{"wrapped timeout", fmt.Errorf("call: %w", timed{timeout: true}), 504},
		{"outermost Timeout decides", timed{err: timed{timeout: true}}, 0},
		{"but a deadline matches", timed{err: context.DeadlineExceeded}, 504},
		{"one branch is enough", errors.Join(other, timed{}, timed{timeout: true}), 504},
		{"no branch", errors.Join(other, timed{}), 0},
		{"refusal and other", errors.Join(&refusal{rejected: true}, other), 0},
		{"refusal and deadline", errors.Join(&refusal{rejected: true}, context.DeadlineExceeded), 504},
		{"refusals", errors.Join(&refusal{rejected: true}, &refusal{rejected: true}), 503},
	} {
		require.Equal(t, row.want, rejection.Status(row.err), row.name)
	}
}
