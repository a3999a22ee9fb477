package console

import (
	"fmt"
	"net/http"
	"time"
)

const (
	mostStreams  = 100             // at once; more get a 503
	writeTimeout = 5 * time.Second // of one message
)

// stream sends each second as a server-sent event. Each second is its own heartbeat. A reader that is slow misses seconds, and
// then gets everything again: nothing waits for it but its own goroutine, and that gives up once a write has lasted for writeTimeout,
// which none does while the kernel's buffers take the messages.
func (c *Console) stream(w http.ResponseWriter, r *http.Request) {
	if !c.enter() {
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("console: %d streams are open already", mostStreams), http.StatusServiceUnavailable)
		return
	}
	defer c.leave()
	to := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would collect it
	defer func() { _ = to.SetWriteDeadline(time.Time{}) }()
	seen := uint64(0)
	for {
		c.mu.Lock()
		message, now, wake := c.frame(seen), c.seq, c.wake
		c.mu.Unlock()
		_ = to.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it cannot be set, the server's own holds
		if _, err := fmt.Fprintf(w, "id: %d\nevent: second\ndata: %s\n\n", now, message); err != nil {
			return
		}
		if err := to.Flush(); err != nil {
			return
		}
		seen = now
		select {
		case <-wake:
		case <-r.Context().Done():
			return
		case <-c.life.Done():
			return
		}
	}
}

func (c *Console) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams == mostStreams {
		return false
	}
	c.streams++
	return true
}

func (c *Console) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams--
}
