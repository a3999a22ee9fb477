package httpx

import (
	"context"
	"fmt"
	"net/http"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/pipeline"
)

// NewTransport puts p around base (nil = http.DefaultTransport); see the package's text for what is retried and returned. p may
// be nil where [PerHost] has one for every host. It is safe for concurrent use, and so are p and base.
// It never modifies a request, and closes its body whatever happens. Wrong options, a nil p and a typed-nil base are an
// error of every RoundTrip. CloseIdleConnections reaches base.
//
// A response that gives way to a retry may still be read when nobody waits for it any longer. net/http's own bodies are then closed
// at once. Where base makes bodies of its own (one that decodes, say), the attempt's context is cancelled, and the body is
// closed when that read has returned: a body that ignores its context holds its goroutine and its connection for as long as
// it hangs, and so does one whose attempt has no timeout, while the caller's context lives.
func NewTransport(p *pipeline.Pipeline, base http.RoundTripper, opts ...Option) http.RoundTripper {
	t := &transport{pipeline: p, base: base}
	t.config, t.bad = configure(false, p, opts)
	switch {
	case base == nil:
		t.base = http.DefaultTransport
	case check.Nil(base):
		bad := check.List{Name: t.config.bad.Name}
		bad.Add(t.bad)
		bad.Bad("httpx", "base", check.Type(base), "nil itself (http.DefaultTransport) or a RoundTripper")
		t.bad = bad.Err()
	}
	return t
}

type transport struct {
	config
	pipeline *pipeline.Pipeline
	base     http.RoundTripper
	bad      error
	budgets  budgets
}

// RoundTrip is http.RoundTripper's.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := call{transport: t, req: req, ctx: req.Context()}
	defer c.end()
	_, c.bound = c.ctx.Deadline()
	if t.bad != nil {
		return nil, t.bad
	}
	p := t.pipeline
	if t.hosts != nil {
		var err error
		if c.host, err = t.hosts.enter(c.ctx, hostOf(req)); err != nil {
			return nil, err
		}
		if c.host.pipeline != nil {
			p = c.host.pipeline
		}
		if p == nil {
			return nil, fmt.Errorf("httpx: PerHost's pipeline for %q is nil: want one, or one given to NewTransport", c.host.name)
		}
	}
	declared := c.declaration()
	c.repeat = declared != nil && (!hasBody(req.Body) || req.GetBody != nil)
	resp, err := pipeline.Do(c.ctx, p, func(ctx context.Context) (*http.Response, error) {
		req, err := c.next(ctx)
		if err != nil {
			return c.fail(err, false)
		}
		resp, err := t.base.RoundTrip(req)
		return c.returned(ctx, req, resp, err)
	}, declared...)
	if err != nil {
		return c.result(err)
	}
	c.done = true
	return resp, nil
}

// CloseIdleConnections is what http.Client looks for.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
