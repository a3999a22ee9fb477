package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/rejection"
)

// Receipt is what a successful charge is worth.
type Receipt string

// charge is the call: a plain http.Client, and no word about resilience but in its error. Both sides of the demonstration
// use this very function.
func charge(ctx context.Context, client *http.Client, url, order string) (Receipt, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/charge", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Idempotency-Key", order) // the server knows a repetition: only so may a charge be retried
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // read to its end, so that the connection is used again
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		wait, asked := rejection.ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
		return "", &StatusError{Code: resp.StatusCode, Wait: wait, Asked: asked}
	}
	return Receipt(body), nil
}

// StatusError is an answer other than 200. It tells the pipeline two things that only HTTP knows.
type StatusError struct {
	Code  int
	Wait  time.Duration // the Retry-After header
	Asked bool          // there was one
}

func (e *StatusError) Error() string { return fmt.Sprintf("billing answered %d", e.Code) }

// RetryAfter is a lower bound for a retry, and closes the cooldown for everybody.
func (e *StatusError) RetryAfter() (time.Duration, bool) { return e.Wait, e.Asked }

// Judge is what the breaker makes of it. A server that says 429 or 404 is well.
func (e *StatusError) Judge(o leaf.Outcome) leaf.Outcome {
	switch {
	case o.Verdict != leaf.Returned: // a timeout or the caller decided, not the answer
	case e.Code == http.StatusTooManyRequests:
		o.Verdict = leaf.Ignored // neither success nor failure
	case e.Code < 500:
		o.Err = nil // a success: it answered, and the fault is ours
	}
	return o
}
