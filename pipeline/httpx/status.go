package httpx

import (
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/rejection"
)

// StatusError is a response that is a failure by its status, as the retry, the guards and Observe see it. The caller of a
// transport gets the response itself wherever it can be read.
type StatusError struct {
	Code   int
	Header http.Header // the response's; read only

	wait  time.Duration
	asked bool
}

// newStatusError reads the wait at once: a date says how long only as long as it is news.
func newStatusError(code int, h http.Header, now func() time.Time) *StatusError {
	e := &StatusError{Code: code, Header: h}
	for _, value := range h["Retry-After"] {
		if wait, ok := rejection.ParseRetryAfter(value, now()); ok {
			e.wait, e.asked = max(e.wait, wait), true
		}
	}
	return e
}

// Error names the status.
func (e *StatusError) Error() string {
	if text := http.StatusText(e.Code); text != "" {
		return fmt.Sprintf("httpx: status %d %s", e.Code, text)
	}
	return fmt.Sprintf("httpx: status %d", e.Code)
}

// RetryAfter is the longest valid Retry-After, never negative; ok is false without one.
func (e *StatusError) RetryAfter() (wait time.Duration, ok bool) { return e.wait, e.asked }

// Judge: 429 is about the caller, and says nothing of the downstream's health; any other status below 500 is an answer, whether
// it is worth another try or not. A limit that fired meanwhile keeps its verdict.
func (e *StatusError) Judge(o leaf.Outcome) leaf.Outcome {
	switch {
	case e.Code == http.StatusTooManyRequests:
		o.Verdict = leaf.Ignored
	case e.Code < 500 && o.Verdict == leaf.Returned:
		o.Err = nil
	}
	return o
}

// bodyError: GetBody failed, so that nothing was sent.
type bodyError struct {
	attempt int
	err     error
}

func (e *bodyError) Error() string {
	return fmt.Sprintf("httpx: GetBody for attempt %d: %v", e.attempt, e.err)
}

func (e *bodyError) Unwrap() error { return e.err }

// Judge gives everything back.
func (e *bodyError) Judge(o leaf.Outcome) leaf.Outcome {
	o.Verdict = leaf.NotRun
	return o
}
