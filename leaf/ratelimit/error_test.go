package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/require"

	refusals "github.com/fairlead/fairlead/internal/refusal"
)

// A refusal of a limiter without a name does not name it.
func TestUnnamedRefusal(t *testing.T) {
	for want, err := range map[string]*LimitedError{
		"ratelimit: limited, enough tokens in 1ns":          {Wait: 1},
		"ratelimit: not enough tokens left, never refilled": {Wait: -1},
		`ratelimit "db": limited, enough tokens in 1ns`:     {Name: "db", Wait: 1},
	} {
		require.EqualError(t, err, want)
	}
}

// A typed nil says nothing, and panics nowhere.
func TestNilError(t *testing.T) {
	var err *LimitedError
	require.Equal(t, "ratelimit: nil", err.Error())
	require.NoError(t, err.Unwrap())
	require.NotErrorIs(t, err, ErrLimited)
	require.False(t, err.Rejected())
	require.False(t, refusals.Is(err))
	_, ok := err.RetryAfter()
	require.False(t, ok)
	_, ok = refusals.RetryAfter(err)
	require.False(t, ok)
}
