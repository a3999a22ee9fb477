package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const httpSection = "HTTP client: faults"

func hasClient(s subject) bool { return s.client != nil }

// server answers with a status, and remembers when it was asked and which bodies were closed.
type server struct {
	status int
	header http.Header
	asked  []time.Time
	bodies []*body
}

type body struct {
	io.Reader
	closed atomic.Bool
}

func (b *body) Close() error { b.closed.Store(true); return nil }

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Now())
	b := &body{Reader: strings.NewReader("an answer")}
	s.bodies = append(s.bodies, b)
	status := s.status
	if len(s.asked) == 3 && s.header != nil {
		status = http.StatusOK
	}
	header := s.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: b, ContentLength: 9, Request: req}, nil
}

// exchange makes one request; text is what the last response's body said.
func exchange(s subject, srv *server, ctx context.Context, method string) (text string, err error) {
	var payload io.Reader
	if method == http.MethodPost {
		payload = strings.NewReader("an order")
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://bank.test/", payload)
	if err != nil {
		return "", err
	}
	resp, err := s.client(srv, 3, 10*time.Millisecond)(req)
	if err != nil {
		return "", err
	}
	all, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return string(all), err
}

func httpProbes() []probe {
	unavailable := func() *server { return &server{status: http.StatusServiceUnavailable} }
	asks := func(wait string) *server {
		return &server{status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {wait}}}
	}
	early := func(srv *server, least time.Duration) bool {
		return len(srv.asked) > 1 && srv.asked[1].Sub(srv.asked[0]) < least
	}
	return []probe{
		{httpSection, "repeats a POST that nobody said may be repeated", hasClient, func(s subject) answer {
			srv := unavailable()
			_, _ = exchange(s, srv, background, http.MethodPost)
			return when(len(srv.asked) > 1)
		}, false},
		{httpSection, "out of attempts, an error instead of the last response", hasClient, func(s subject) answer {
			text, err := exchange(s, unavailable(), background, http.MethodGet)
			return when(err != nil || text != "an answer")
		}, false},
		{httpSection, "leaves bodies of discarded responses open", hasClient, func(s subject) answer {
			srv := unavailable()
			_, _ = exchange(s, srv, background, http.MethodGet)
			for _, b := range srv.bodies[:len(srv.bodies)-1] { // the last one may still be had, out of an error
				if !b.closed.Load() {
					return yes
				}
			}
			return no
		}, false},
		{httpSection, "comes back before Retry-After in seconds", hasClient, func(s subject) answer {
			srv := asks("1")
			_, _ = exchange(s, srv, background, http.MethodGet)
			return when(early(srv, time.Second))
		}, false},
		{httpSection, "comes back before Retry-After as a date", hasClient, func(s subject) answer {
			srv := asks(time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)) // whole seconds: one to two of them
			_, _ = exchange(s, srv, background, http.MethodGet)
			return when(early(srv, 900*time.Millisecond))
		}, false},
		{httpSection, "sleeps a Retry-After that ends after the deadline", hasClient, func(s subject) answer {
			ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
			defer cancel()
			return when(took(func() { _, _ = exchange(s, asks("30"), ctx, http.MethodGet) }) > 400*time.Millisecond)
		}, false},
		{httpSection, "sleeps whatever Retry-After says, without a bound", hasClient, func(s subject) answer {
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			done := make(chan struct{})
			go func() { defer close(done); _, _ = exchange(s, asks("86400"), ctx, http.MethodGet) }()
			select {
			case <-done:
				return no
			case <-time.After(time.Second):
				cancel()
				<-done
				return yes
			}
		}, false},
	}
}
