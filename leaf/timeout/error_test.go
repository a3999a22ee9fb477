package timeout_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf/timeout"
)

func TestError(t *testing.T) {
	err := &timeout.Error{Name: "billing", Limit: 2 * time.Second, Err: io.ErrUnexpectedEOF}
	require.EqualError(t, err, `timeout "billing": limit of 2s reached; last failure: unexpected EOF`)
	require.EqualError(t, &timeout.Error{Limit: 1, Err: context.DeadlineExceeded}, "timeout: limit of 1ns reached", "no news")
	require.EqualError(t, &timeout.Error{Limit: 1, Err: stopped{io.EOF}}, "timeout: limit of 1ns reached; last failure: EOF", "of the loop inside")
	require.EqualError(t, &timeout.Error{Limit: 1, Err: stopped{}}, "timeout: limit of 1ns reached")
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

// stopped is the stop of a retry loop.
type stopped struct{ last error }

func (stopped) Error() string                   { return "context_ended: timeout: limit of 1ns reached" }
func (s stopped) LastFailure(ended.Asked) error { return s.last }

func TestNilError(t *testing.T) {
	var err *timeout.Error
	require.Equal(t, "timeout: nil", err.Error())
	require.NoError(t, err.Unwrap())
	require.NotErrorIs(t, err, timeout.ErrTimeout)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, err.Timeout())
	require.False(t, err.Rejected())
}

// A target of an uncomparable type must not panic.
func TestErrorIsOfUncomparableTarget(t *testing.T) {
	require.NotErrorIs(t, &timeout.Error{}, uncomparable{})
}

type uncomparable []int

func (uncomparable) Error() string { return "uncomparable" }
