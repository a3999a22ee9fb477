package retry

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func goexit() { runtime.Goexit() }

// unwinds says that f does not return, on a goroutine of its own.
func unwinds(t *testing.T, f func()) {
	t.Helper()
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
		returned = true
	}()
	<-done
	require.False(t, returned, "it came back")
}
