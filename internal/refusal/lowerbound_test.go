package refusal

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type hinted time.Duration

func (h hinted) Error() string                     { return "hinted" }
func (h hinted) RetryAfter() (time.Duration, bool) { return time.Duration(h), true }

type upTo struct {
	hinted
	upper bool
	err   error
}

func (u upTo) UpperBound() bool { return u.upper }
func (u upTo) Unwrap() error    { return u.err }

func TestLowerBoundPassesOverUpperBounds(t *testing.T) {
	for _, c := range []struct {
		err          error
		lower, plain time.Duration // < 0: none
	}{
		{nil, -1, -1},
		{errors.New("x"), -1, -1},
		{hinted(3), 3, 3},
		{upTo{3, true, nil}, -1, 3},
		{upTo{3, false, nil}, 3, 3},
		{fmt.Errorf("%w", upTo{3, true, nil}), -1, 3},
		{upTo{3, true, hinted(2)}, 2, 3}, // what it wraps is asked
		{errors.Join(upTo{9, true, nil}, hinted(2), hinted(4)), 4, 9},
		{hinted(-1), -1, -1},
	} {
		wait, ok := LowerBound(c.err)
		require.Equal(t, c.lower >= 0, ok, "%v", c.err)
		require.Equal(t, max(0, c.lower), wait)
		wait, ok = RetryAfter(c.err)
		require.Equal(t, c.plain >= 0, ok, "%v", c.err)
		require.Equal(t, max(0, c.plain), wait)
	}
}
