package bulkhead

import (
	"testing"

	"github.com/stretchr/testify/require"

	refusals "github.com/fairlead/fairlead/internal/refusal"
)

// A refusal of a bulkhead without a name does not name it.
func TestUnnamedRefusal(t *testing.T) {
	for want, err := range map[string]*FullError{
		"bulkhead: full (3 at once)":             {Max: 3},
		"bulkhead: full (3 at once), waited 1ns": {Max: 3, Waited: 1},
		`bulkhead "db": full (3 at once)`:        {Name: "db", Max: 3},
	} {
		require.EqualError(t, err, want)
	}
}

// A typed nil says nothing, and panics nowhere.
func TestNilError(t *testing.T) {
	var err *FullError
	require.Equal(t, "bulkhead: nil", err.Error())
	require.NoError(t, err.Unwrap())
	require.NotErrorIs(t, err, ErrFull)
	require.False(t, err.Rejected())
	require.False(t, refusals.Is(err))
	_, ok := err.RetryAfter()
	require.False(t, ok)
	_, ok = refusals.RetryAfter(err)
	require.False(t, ok)
}
