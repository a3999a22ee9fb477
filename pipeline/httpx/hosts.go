package httpx

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/pipeline"
)

// hosts is PerHost's table. make never runs under its lock.
type hosts struct {
	make func(host string) *pipeline.Pipeline
	max  int

	mu     sync.Mutex
	byName map[string]*host
	turn   uint64 // counts the calls that left
}

// host is one entry, or a fresh pipeline that is in no table.
type host struct {
	name     string
	pipeline *pipeline.Pipeline // nil = the transport's own
	made     bool
	ready    chan struct{} // closed when make has ended; nil = not kept

	inside int    // calls; under hosts.mu, as the next
	left   uint64 // the turn at which it was last used
}

func newHosts(make func(string) *pipeline.Pipeline, max int) *hosts {
	return &hosts{make: make, max: max, byName: map[string]*host{}}
}

// hostOf is the key: one for all spellings of the same host.
func hostOf(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	name := strings.ToLower(req.URL.Host)
	switch strings.ToLower(req.URL.Scheme) {
	case "http":
		name = strings.TrimSuffix(name, ":80")
	case "https":
		name = strings.TrimSuffix(name, ":443")
	}
	return strings.TrimSuffix(name, ":") // no port after it is the default one, too
}

// enter counts a call in. Whoever gets a host leaves it.
func (t *hosts) enter(ctx context.Context, name string) (*host, error) {
	for {
		h, first := t.find(name)
		switch {
		case h == nil:
			return &host{name: name, pipeline: t.make(name)}, nil
		case first:
			t.fill(h)
			return h, nil
		}
		if err := h.wait(ctx); err != nil {
			t.leave(h)
			return nil, err
		}
		if h.made {
			return h, nil
		}
		t.leave(h) // make panicked for somebody else: this call's turn
	}
}

// wait is for the end of make; most often it was long ago.
func (h *host) wait(ctx context.Context) error {
	select {
	case <-h.ready:
		return nil
	default:
	}
	select {
	case <-h.ready:
		return nil
	case <-ctx.Done():
		return ended.Err(ctx)
	}
}

// find enters name's host; first = it is new, and the caller has to fill it. Nil = there is none and no room.
func (t *hosts) find(name string) (h *host, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.byName[name]; h != nil {
		h.inside++
		return h, false
	}
	if len(t.byName) >= t.max {
		victim := t.idlest()
		if victim == nil {
			return nil, false
		}
		delete(t.byName, victim.name)
	}
	h = &host{name: name, ready: make(chan struct{}), inside: 1}
	t.byName[name] = h
	return h, true
}

// idlest is the host without a call for the longest time.
func (t *hosts) idlest() (found *host) {
	for _, h := range t.byName {
		if h.inside == 0 && (found == nil || h.left < found.left) {
			found = h
		}
	}
	return found
}

// fill makes the pipeline. When make panics, the entry is gone before anybody hears of it.
func (t *hosts) fill(h *host) {
	defer func() {
		if !h.made {
			t.mu.Lock()
			delete(t.byName, h.name)
			t.mu.Unlock()
		}
		close(h.ready)
	}()
	h.pipeline = t.make(h.name)
	h.made = true
}

func (t *hosts) leave(h *host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn++
	h.inside--
	h.left = t.turn
}
