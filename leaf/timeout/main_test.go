package timeout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fairlead/fairlead/leaf/timeout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errApp = errors.New("the callback's own error")

func limit(name string, d time.Duration) *timeout.Timeout {
	return timeout.MustNew(timeout.Config{Name: name, Limit: d})
}

// fail is a callback that works for d without looking at its context, and fails.
func fail(d time.Duration) func(context.Context) (int, error) {
	return func(context.Context) (int, error) {
		<-time.After(d)
		return 7, errApp
	}
}

// obey is a callback that works until its context ends, and fails.
func obey(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 7, errApp
}
