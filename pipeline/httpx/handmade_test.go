package httpx_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/fairlead/fairlead/pipeline/httpx"
	"github.com/stretchr/testify/require"
)

// A program that returns a StatusError from a callback of its own, or fakes one in a test, is understood as the transport is.
func TestAStatusErrorMadeByHandTellsItsRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, "0": 0, "Sun, 06 Nov 1994 08:49:37 GMT": 0} {
		wait, ok := (&httpx.StatusError{Code: 503, Header: http.Header{"Retry-After": {value}}}).RetryAfter()
		require.True(t, ok, value)
		require.Equal(t, want, wait, value)
	}
	wait, ok := (&httpx.StatusError{Code: 429, Header: http.Header{"Retry-After": {"3", "soon", "9"}}}).RetryAfter()
	require.True(t, ok)
	require.Equal(t, 9*time.Second, wait)
	for _, none := range []http.Header{nil, {}, {"Retry-After": {"soon"}}, {"Retry-After": {"-1"}}} {
		_, ok := (&httpx.StatusError{Code: 503, Header: none}).RetryAfter()
		require.False(t, ok, "%v", none)
	}
}
