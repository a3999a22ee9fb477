package main

import (
	"net/http"
	"time"
)

// hasty is a client that repeats everything, three times, whatever the server says.
func hasty(server http.RoundTripper, attempts int, _ time.Duration) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (resp *http.Response, err error) {
		for range attempts {
			resp, err = server.RoundTrip(req)
		}
		return resp, err
	}
}
