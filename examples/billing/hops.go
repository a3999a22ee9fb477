package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/httpx"
)

// patience is what the gateway gives an order, whatever happens behind it.
const patience = 400 * time.Millisecond

// newGateway passes orders on to billing. The time that is left goes along in a header, by itself.
func newGateway(billingURL string, base http.RoundTripper) http.Handler {
	p := pipeline.For("gateway").Timeout(timeout.MustNew(timeout.Config{Limit: patience})).MustBuild()
	client := &http.Client{Transport: httpx.NewTransport(p, base)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		url := billingURL + "?order=" + url.QueryEscape(r.FormValue("order"))
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, nil)
		if err != nil {
			http.Error(w, "no such order", http.StatusBadRequest)
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			http.Error(w, "no answer in time", http.StatusGatewayTimeout)
			return
		}
		defer resp.Body.Close()
		if after := resp.Header.Get("Retry-After"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	})
}

// bank charges each order once, except while it is down.
type bank struct {
	down    atomic.Bool
	mu      sync.Mutex
	charged map[string]int
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	order := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.charged[order] == 0 {
		b.charged[order]++
	}
	_, _ = fmt.Fprintf(w, "receipt of %s", order)
}

// hop notes what a service sees and answers.
type hop struct {
	name string
	http.Handler

	mu      sync.Mutex
	answers map[int]int
	budget  string // the last one
}

func (h *hop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noted := &status{ResponseWriter: w, code: http.StatusOK}
	h.Handler.ServeHTTP(noted, r)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[noted.code]++
	h.budget = r.Header.Get(budget.Header)
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// take is what it saw since the last time.
func (h *hop) take() seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := seen{hop: h.name, answers: h.answers, budget: h.budget}
	h.answers, h.budget = map[int]int{}, ""
	return s
}

type seen struct {
	hop     string
	answers map[int]int // by status
	budget  string      // milliseconds, in the last request's header
}

func (s seen) print(out io.Writer) {
	total, parts := 0, []string{}
	for code, n := range s.answers {
		total += n
		parts = append(parts, fmt.Sprintf("%d × %d", n, code))
	}
	slices.Sort(parts)
	left := "no limit in its header"
	if s.budget != "" {
		left = s.budget + " ms left in its header"
	}
	if total == 0 {
		left = "nothing seen"
	}
	fmt.Fprintf(out, "  %-8s %3d requests   %-22s %s\n", s.hop, total, strings.Join(parts, ", "), left)
}
