package refusal

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type silent struct{ error }

type asks struct{ error }

func (asks) RetryAfter() (time.Duration, bool) { return time.Second, true }

// as is found by errors.As as something that it does not wrap.
type as struct{ error }

func (as) As(any) bool { return false }

// What is plain needs no walk: whatever a walk could find makes an error not plain.
func TestPlain(t *testing.T) {
	for _, err := range []error{errPlain, errors.New("x"), silent{}, &silent{}} {
		require.True(t, Plain(err), "%T", err)
		require.False(t, Is(err))
		_, hinted := RetryAfter(err)
		require.False(t, hinted)
		require.NoError(t, errors.Unwrap(err))
	}
	for _, err := range []error{yes, no, says{}, waits{}, asks{}, as{}, several{}, fmt.Errorf("%w", errPlain), errors.Join(errPlain)} {
		require.False(t, Plain(err), "%T", err)
	}
}
