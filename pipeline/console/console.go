package console

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/fairlead/fairlead/pipeline"
)

const tick = time.Second

// Console is an http.Handler that shows pipelines live. It is safe for concurrent use. Make one with [Handler], and end it with Close.
type Console struct {
	options
	source Source
	pages  pages
	boot   string // tells one life of a console from another

	life    context.Context
	stop    context.CancelFunc
	sampler sync.WaitGroup

	// The sampler's own.
	watched map[*pipeline.Pipeline]*watched
	tracks  map[any]*track
	nextID  int // of a pipeline
	tracked int // so many circuits: the last one's ID

	mu      sync.Mutex // guards what follows; nobody else's code runs under it
	closed  bool
	seq     uint64
	at      time.Time
	failed  string // of the source
	rows    []*shown
	changed uint64        // the seq at which the list of pipelines became what it is
	wake    chan struct{} // closed by the next second
	frames  frames
	streams int
}

// Handler is a console of the source's pipelines: a *registry.Registry, or [Pipelines]. It begins to count at once, on one
// goroutine and with one subscriber to each pipeline, until Close.
//
// It serves every path by its last segment alone, and the page's own links are relative: mount it under any prefix that ends with
// a slash, with or without http.StripPrefix. Whoever can reach it reads names, limits and texts of errors: put it on an internal
// listener, or behind what lets people in. A listener that only this machine or network reaches does not do for browsers: a page of
// somebody else's, whose name resolves to it by now, is of the console's origin to the browser (DNS rebinding). Where no login
// stands in front, compare the request's Host with the names that the service is known by; the console knows none.
//
// An error is a mistake of the program: a source that is nil, a nil among [Pipelines], an option that is nil or was given nil; all
// of them at once, each by its name and what it wants. The *Console is then nil, nothing was subscribed to, and serving from it
// panics: do not mount it.
func Handler(source Source, opts ...Option) (*Console, error) {
	c, err := newConsole(source, opts)
	if err != nil {
		return nil, err
	}
	c.sample(time.Now())
	c.sampler.Add(1)
	go c.run()
	return c, nil
}

func newConsole(source Source, opts []Option) (*Console, error) {
	o, err := newOptions(source, opts)
	if err != nil {
		return nil, err
	}
	c := &Console{
		options: o, source: source, boot: rand.Text(), pages: loadPages(),
		watched: map[*pipeline.Pipeline]*watched{}, tracks: map[any]*track{}, wake: make(chan struct{}),
	}
	c.life, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// run samples once a second.
func (c *Console) run() {
	defer c.sampler.Done()
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for {
		select {
		case <-c.life.Done():
			return
		case <-clock.C:
			c.sample(time.Now())
		}
	}
}

// Close ends the sampling, the streams that are open and the subscriptions. It waits for a look that is under way, never for a
// client. Requests that come later get a 503. It is idempotent, its error is always nil, and it
// must not be called by what a look runs: a guard's Inspect, the source's Pipelines.
func (c *Console) Close() error {
	c.stop()
	c.sampler.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	for _, w := range c.watched {
		w.cancel()
	}
	clear(c.watched)
	return nil
}
