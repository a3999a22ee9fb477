package httpx

import (
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/rejection"
)

// StatusError is a response that is a failure by its status, as the retry, the guards and Observe see it. The caller of a
// transport gets the response itself wherever it can be read.
type StatusError struct {
	Code   int
	Header http.Header // the response's; read only

	read     bool // by the transport, when the response came: wait and asked
	wait     time.Duration
	asked    bool
	response *offer // nil = none that is to be read ahead
}

// newStatusError reads the wait at once: a date says how long only as long as it is news.
func newStatusError(code int, h http.Header, now func() time.Time) *StatusError {
	e := &StatusError{Code: code, Header: h, read: true}
	e.wait, e.asked = retryAfter(h, now)
	return e
}

func retryAfter(h http.Header, now func() time.Time) (longest time.Duration, ok bool) {
	for _, value := range h["Retry-After"] {
		if wait, valid := rejection.ParseRetryAfter(value, now()); valid {
			longest, ok = max(longest, wait), true
		}
	}
	return longest, ok
}

// Error names the status.
func (e *StatusError) Error() string {
	if text := http.StatusText(e.Code); text != "" {
		return fmt.Sprintf("httpx: status %d %s", e.Code, text)
	}
	return fmt.Sprintf("httpx: status %d", e.Code)
}

// RetryAfter is the longest valid Retry-After, never negative; ok is false without one. A date is measured from when the response
// came or, for a StatusError that a program made itself, from now.
func (e *StatusError) RetryAfter() (wait time.Duration, ok bool) {
	if !e.read {
		return retryAfter(e.Header, time.Now)
	}
	return e.wait, e.asked
}

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

// RetryFollows begins to read ahead what gives way to the retry. It is for the pipeline alone.
func (e *StatusError) RetryFollows(ended.Asked) {
	if e.response != nil {
		e.response.accept()
	}
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

// leftError: the caller closed the request's Cancel.
type leftError struct{ error }

func (e *leftError) Unwrap() error { return e.error }

// Judge says that the caller went away. A deadline of the same instant, which http.Client's Timeout is, keeps its verdict.
func (e *leftError) Judge(o leaf.Outcome) leaf.Outcome {
	if o.Verdict == leaf.Returned {
		o.Verdict = leaf.CallerCancelled
	}
	return o
}
