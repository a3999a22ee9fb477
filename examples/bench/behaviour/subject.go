package main

import (
	"context"
	"net/http"
	"time"
)

// call guards one run of fn.
type call func(ctx context.Context, fn func(context.Context) error) error

// subject is one library, as its own documentation uses it. What it has not is nil, and n.a. in the table.
type subject struct {
	name string
	deaf bool // its breaker, bulkhead and timeout take no context: how they treat one cannot be asked

	bulkhead func(n int) call                     // at most n at once, the others are refused at once
	waiting  func(n int, wait time.Duration) call // at most n at once, the others wait so long
	breaker  func() call                          // three failures in a row open it for openFor; one probe, one success closes
	retry    func(pause time.Duration) call       // three attempts with a constant pause
	timeout  func(limit time.Duration) call
	timedOut error // what a timeout's error is

	retryBreaker func(pause time.Duration) call        // the retry around the breaker
	retrySlots   func(pause time.Duration, n int) call // the retry and the bulkhead
	timedSlots   func(limit time.Duration, n int) call // the timeout and the bulkhead

	storm  func() call // a retry of three attempts without a pause, else with defaults
	budget func() call // the same with whatever bounds retries more tightly

	delays  func(base, most time.Duration) []time.Duration // of a jittered exponential backoff with a cap
	limiter func(every time.Duration) limiter              // a token each, and one at first
	clocked func() func(now time.Time, n int) bool         // one per second, 100 at first, full; told the time, it gives n or says no

	client func(base http.RoundTripper, attempts int, pause time.Duration) func(*http.Request) (*http.Response, error)

	features map[string]func() bool // that others may lack
}

type limiter struct {
	allow func() bool
	wait  func(context.Context) error
}

const openFor = 300 * time.Millisecond

var background = context.Background()
