package timeout_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/timeout"
)

func TestError(t *testing.T) {
	err := &timeout.Error{Name: "billing", Limit: 2 * time.Second, Err: io.ErrUnexpectedEOF}
	require.EqualError(t, err, `timeout "billing": limit of 2s reached`, "the callback's result is not in it")
	require.EqualError(t, &timeout.Error{Limit: time.Millisecond}, "timeout: limit of 1ms reached")
	require.ErrorIs(t, err, timeout.ErrTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, context.Canceled)
	require.False(t, err.Rejected())
	var timed net.Error
	require.False(t, errors.As(err, &timed), "net.Error is more than Timeout")
	require.True(t, err.Timeout())
	require.NoError(t, errors.Unwrap(&timeout.Error{}))
}

// A target of an uncomparable type must not panic.
func TestErrorIsOfUncomparableTarget(t *testing.T) {
	require.NotErrorIs(t, &timeout.Error{}, uncomparable{})
}

type uncomparable []int

func (uncomparable) Error() string { return "uncomparable" }
