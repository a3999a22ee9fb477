package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/budget"
)

// server is a billing service that has a bad day. It drops what nobody waits for any more, in the queue or
// under way; many servers do not even do that.
type server struct {
	script   script
	slots    chan struct{}
	quota    quota
	arrived  atomic.Int64
	inside   atomic.Int64 // queued or worked on
	perPhase []served
}

// served is the server's own count of the requests that came in one phase.
type served struct {
	requests atomic.Int64
	paid     atomic.Int64 // answered with a 200 while somebody still waited for it
	peak     atomic.Int64 // the most that were inside at once
}

func newServer(s script) *server {
	return &server{script: s, slots: make(chan struct{}, slots), perPhase: make([]served, len(phases))}
}

// listen serves on l until stop is called, which ends every connection.
func (s *server) listen(l net.Listener) (stop func()) {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(l) })
	return func() {
		_ = srv.Close()
		serving.Wait()
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := s.script.elapsed()
	at := s.script.at(now)
	count := &s.perPhase[at]
	count.requests.Add(1)
	count.reached(s.inside.Add(1))
	defer s.inside.Add(-1)

	code := s.answer(r.Context(), phases[at], now)
	switch code {
	case gone:
		return
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case http.StatusOK:
		count.paid.Add(1)
	}
	w.WriteHeader(code)
	fmt.Fprintf(w, "%s for %s", http.StatusText(code), r.Header.Get("Idempotency-Key"))
}

// gone is the answer to somebody who has left: none.
const gone = 0

func (s *server) answer(ctx context.Context, p phase, now time.Duration) int {
	n := s.arrived.Add(1)
	if p.quota > 0 && !s.quota.take(now, p.quota) {
		return http.StatusTooManyRequests
	}
	if n%lost == 0 {
		<-ctx.Done()
		return gone
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return gone
	}
	if budget.Sleep(ctx, nil, p.length(s.inside.Load())) != nil {
		return gone
	}
	if p.down || n%odd == odd/2 {
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// reached raises the peak.
func (c *served) reached(inside int64) {
	for peak := c.peak.Load(); inside > peak && !c.peak.CompareAndSwap(peak, inside); peak = c.peak.Load() {
	}
}

// quota is so many per second, counted anew each second, as such quotas are.
type quota struct {
	mu    sync.Mutex
	until time.Duration
	used  int
}

func (q *quota) take(now time.Duration, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now >= q.until {
		q.until, q.used = now+time.Second, 0
	}
	q.used++
	return q.used <= limit
}
