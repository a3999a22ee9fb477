package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/rejection"
)

// errReset is a connection that broke, or was refused.
var errReset = errors.New("connection reset")

// statusError is an HTTP response that is no success. It tells the pipeline the two things that only HTTP knows: what
// the other side asked for, and that a 429 says nothing of its health.
type statusError struct {
	code  int
	wait  time.Duration // its Retry-After
	asked bool          // there was one
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.code) }

func (e *statusError) RetryAfter() (time.Duration, bool) { return e.wait, e.asked }

func (e *statusError) Judge(o leaf.Outcome) leaf.Outcome {
	if e.code == http.StatusTooManyRequests {
		o.Verdict = leaf.Ignored
	}
	return o
}

// overTheWire is what the other end of a connection learns of an error: a status and a Retry-After, and nothing of its type.
func overTheWire(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err // the caller hung up: he is told nothing any more
	}
	e := &statusError{code: rejection.Status(err)}
	if e.code == 0 {
		e.code = http.StatusBadGateway
	}
	if header := (http.Header{}); rejection.SetHeader(header, err) {
		e.wait, e.asked = rejection.ParseRetryAfter(header.Get("Retry-After"), time.Now())
	}
	return e
}
