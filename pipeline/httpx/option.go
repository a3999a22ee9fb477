package httpx

import (
	"fmt"
	"net/http"

	"github.com/jonboulle/clockwork"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// Option of [NewTransport] or [Middleware]. A later one replaces an earlier one of its kind.
type Option func(*config)

type config struct {
	server   bool
	hosts    *hosts
	safety   func(*http.Request) retry.Safety
	statuses *statusSet
	clock    clock.Clock
	bad      check.List
}

// PerHost gives each host a pipeline of its own. make builds it on the host's first call, outside every lock, and must be
// safe for concurrent use; for nil, the transport's own pipeline is used. The host is the URL's, in lower case and without
// its scheme's default port. At most max pipelines are kept, max from 1. To make room the one is dropped that has been without
// a call for the longest time; when all have calls, the new host's call gets a fresh pipeline that is not kept.
// A dropped pipeline forgets what it knew, as that a circuit was open: let max exceed the hosts in regular use.
// For NewTransport alone.
func PerHost(make func(host string) *pipeline.Pipeline, max int) Option {
	return func(c *config) {
		c.clientOnly("PerHost")
		if make == nil {
			c.bad.Bad("httpx", "PerHost's make", "nil", "a function")
		}
		if max < 1 {
			c.bad.Bad("httpx", "PerHost's max", max, "1 or more")
		}
		c.hosts = newHosts(make, max)
	}
}

// Safety declares requests that may be repeated, besides those that may by their method or key; retry.Unsafe declares
// nothing. f is called once per call; it must be pure and safe for concurrent use. For NewTransport alone.
func Safety(f func(*http.Request) retry.Safety) Option {
	return func(c *config) {
		c.clientOnly("Safety")
		if f == nil {
			c.bad.Bad("httpx", "Safety", "nil", "a function")
		}
		c.safety = f
	}
}

// RetryStatus replaces the set of statuses that are retried (408, 425, 429, 500, 502, 503, 504); none = no status is. Each is
// from 200 to 599. What the guards are told of a status stays the same. For NewTransport alone.
func RetryStatus(codes ...int) Option {
	return func(c *config) {
		c.clientOnly("RetryStatus")
		c.statuses = &statusSet{}
		for _, code := range codes {
			if code < 200 || code > 599 {
				c.bad.Bad("httpx", "RetryStatus", code, "statuses from 200 to 599")
				continue
			}
			c.statuses[code] = true
		}
	}
}

// Clock is the one of the pipeline's layers, for the budget header and for dates in Retry-After; nil = real time.
// The deadline that [Middleware] derives from the budget header is in real time all the same.
func Clock(clk clockwork.Clock) Option {
	return func(c *config) {
		if clk != nil && check.Nil(clk) {
			c.bad.Bad("httpx", "Clock", check.Type(clk), "nil itself (real time) or a clock")
			return
		}
		c.clock = clock.Of(clk)
	}
}

func (c *config) clientOnly(name string) {
	if c.server {
		c.bad.Bad("httpx", name, "given to Middleware", "it given to NewTransport: a handler runs once")
	}
}

// configure checks everything at once.
func configure(server bool, p *pipeline.Pipeline, opts []Option) (c config, err error) {
	c = config{server: server, statuses: &retried}
	if p != nil {
		c.bad.Name = p.Name()
	}
	for i, o := range opts {
		if o == nil {
			c.bad.Bad("httpx", fmt.Sprintf("option %d", i+1), "nil", "an Option")
			continue
		}
		o(&c)
	}
	if p == nil && c.hosts == nil {
		c.bad.Bad("httpx", "the pipeline", "nil", "a pipeline")
	}
	return c, c.bad.Err()
}

// statusSet is a set of statuses.
type statusSet [600]bool

func (s *statusSet) has(code int) bool { return code >= 0 && code < len(s) && s[code] }

// retried is the set if nobody says otherwise: what may pass by itself.
var retried = statusSet{
	http.StatusRequestTimeout: true, http.StatusTooEarly: true, http.StatusTooManyRequests: true,
	http.StatusInternalServerError: true, http.StatusBadGateway: true, http.StatusServiceUnavailable: true,
	http.StatusGatewayTimeout: true,
}
