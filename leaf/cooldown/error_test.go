package cooldown

import (
	"testing"

	"github.com/stretchr/testify/require"

	refusals "github.com/fairlead/fairlead/internal/refusal"
)

// A refusal of a cooldown without a name does not name it.
func TestUnnamedRefusal(t *testing.T) {
	for want, err := range map[string]*Error{
		"cooldown: cooling down for another 1ns":      {Wait: 1},
		`cooldown "db": cooling down for another 1ns`: {Name: "db", Wait: 1},
	} {
		require.EqualError(t, err, want)
	}
}

// A typed nil says nothing, and panics nowhere.
func TestNilError(t *testing.T) {
	var err *Error
	require.Equal(t, "cooldown: nil", err.Error())
	require.NoError(t, err.Unwrap())
	require.NotErrorIs(t, err, ErrCooling)
	require.False(t, err.Rejected())
	require.False(t, refusals.Is(err))
	_, ok := err.RetryAfter()
	require.False(t, ok)
	_, ok = refusals.RetryAfter(err)
	require.False(t, ok)
}
