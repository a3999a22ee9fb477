package breaker

import (
	"testing"

	"github.com/stretchr/testify/require"

	refusals "github.com/fairlead/fairlead/internal/refusal"
)

// A refusal of a breaker without a name does not name it.
func TestUnnamedRefusal(t *testing.T) {
	for want, err := range map[string]*OpenError{
		"breaker: open":      {State: Open},
		`breaker "db": open`: {Name: "db", State: Open},
	} {
		require.EqualError(t, err, want)
	}
}

// A typed nil says nothing, and panics nowhere.
func TestNilError(t *testing.T) {
	var err *OpenError
	require.Equal(t, "breaker: nil", err.Error())
	require.NoError(t, err.Unwrap())
	require.NotErrorIs(t, err, ErrOpen)
	require.False(t, err.Rejected())
	require.False(t, refusals.Is(err))
	_, ok := err.RetryAfter()
	require.False(t, ok)
	_, ok = refusals.RetryAfter(err)
	require.False(t, ok)
}
