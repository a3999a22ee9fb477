package rejection_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refusal is an error with both methods, around another.
type refusal struct {
	rejected bool
	wait     time.Duration
	hint     bool
	err      error
}

func (r *refusal) Error() string                     { return "refused" }
func (r *refusal) Rejected() bool                    { return r.rejected }
func (r *refusal) RetryAfter() (time.Duration, bool) { return r.wait, r.hint }
func (r *refusal) Unwrap() error                     { return r.err }

// timed is an error with Timeout() bool alone, around another.
type timed struct {
	timeout bool
	err     error
}

func (e timed) Error() string { return "timed" }
func (e timed) Timeout() bool { return e.timeout }
func (e timed) Unwrap() error { return e.err }
