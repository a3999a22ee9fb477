package httpx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// errNoResponse is what http.Client would say too.
var errNoResponse = errors.New("httpx: the base RoundTripper returned neither a response nor an error")

// call is one RoundTrip. It lives on the caller's stack.
type call struct {
	*transport
	req    *http.Request
	ctx    context.Context // the caller's
	host   *host           // nil = no PerHost
	repeat bool            // it may be sent again
	bound  bool            // ctx has a deadline

	declared [1]pipeline.Option // by the program's Safety

	runs    int
	own     bool           // the run's context is a limit of the pipeline's timeouts
	sent    *sent          // the run's own part; nil = it sends the caller's request
	given   bool           // the caller's body is the base's to close
	sending io.Closer      // the body that base has while it runs
	parked  *parked        // the last run's response, where its status is a failure
	got     *http.Response // the last run's, where it is a success
	raw     error          // the last run's failure, where it may not be repeated …
	marked  error          // … and what the pipeline is told instead
	done    bool           // the caller has the result
}

// next is the request of another run. The response before is discarded only here, when it is certain that another follows.
func (c *call) next(ctx context.Context) (*http.Request, error) {
	c.runs++
	if last := c.parked; last != nil {
		c.parked = nil
		last.discard(ctx, c.clock)
	}
	req, err := c.outgoing(ctx)
	if err != nil {
		return nil, err
	}
	if hasBody(req.Body) {
		c.sending = req.Body
	}
	c.given = true
	return req, nil
}

// returned makes the run's result of what base returned for req.
func (c *call) returned(ctx context.Context, req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	c.sending = nil
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close() // against the contract, but it would leak
		}
		if c.withdrawn() {
			return c.leave(err)
		}
		return c.fail(err, c.repeat)
	case resp == nil:
		return c.fail(errNoResponse, c.repeat)
	}
	if req != c.req && resp.Request == req {
		resp.Request = c.req
	}
	code := resp.StatusCode
	again := c.repeat && c.statuses.has(code)
	if !again && code < 500 && code != http.StatusTooManyRequests { // most responses
		if c.own && !bodiless(c.req, resp) {
			resp.Body = c.reader(ctx).around(resp.Body)
		}
		c.got = resp
		return resp, nil
	}
	return c.park(ctx, resp, again)
}

// park keeps a response that is a failure by its status, until it is known what becomes of it.
func (c *call) park(ctx context.Context, resp *http.Response, again bool) (*http.Response, error) {
	c.parked = &parked{resp: resp, empty: bodiless(c.req, resp), ctx: ctx}
	if c.own && !c.parked.empty {
		c.parked.reader = c.reader(ctx)
	}
	err := newStatusError(resp.StatusCode, resp.Header, c.clock.Time)
	if again {
		err.response = c.parked.offered()
	}
	return c.fail(err, again)
}

// reader holds the run's context, for its body. Where the context is the caller's own, or there is no body, nothing does.
func (c *call) reader(ctx context.Context) *body {
	c.sent.body.hold(ctx)
	return &c.sent.body
}

// fail marks what must not be repeated. The mark is for this pipeline alone: result takes it off.
func (c *call) fail(err error, again bool) (*http.Response, error) {
	c.raw, c.marked = nil, nil
	if !again {
		c.raw, c.marked = err, retry.Permanent(err)
		err = c.marked
	}
	return nil, err
}

// withdrawn says that the caller went away by the request's own channel.
func (c *call) withdrawn() bool {
	select {
	//lint:ignore SA1019 http.Client itself makes its Timeout of it
	case <-c.req.Cancel:
		return true
	default:
		return false
	}
}

// leave is fail for a caller who went away.
func (c *call) leave(err error) (*http.Response, error) {
	c.raw, c.marked = err, retry.Permanent(&leftError{err})
	return nil, c.marked
}

// result is what the caller gets for a failure: the last response, where there is one and the call's time is not over, or the error.
func (c *call) result(err error) (*http.Response, error) {
	over := c.over(err)
	err = c.unmarked(err)
	if last := c.parked; last != nil && !over {
		if resp := last.take(); resp != nil {
			c.parked, c.done = nil, true
			return resp, nil
		}
	}
	if by := ended.Err(c.ctx); by != nil && !ended.Is(err, c.ctx.Err()) { // retry's ReturnLast does not tell
		err = fmt.Errorf("%w: %w", by, err)
	}
	if _, tells := err.(interface{ Timeout() bool }); !tells && rejection.Status(err) == http.StatusGatewayTimeout {
		err = &expiredError{err}
	}
	return nil, err
}

// expiredError tells what http.Client and net.Error ask for, where an error of the retry does not.
type expiredError struct{ error }

func (e *expiredError) Unwrap() error { return e.error }

// Timeout is true.
func (e *expiredError) Timeout() bool { return true }

// over says that the time of the call ended it, the caller's or that of a timeout.
func (c *call) over(err error) bool {
	if c.marked != nil && err == c.marked {
		return false // its answer is what it is, whatever came after it
	}
	_, limited := err.(*timeout.Error)
	return limited || c.ctx.Err() != nil
}

// unmarked is err as if nothing had been marked.
func (c *call) unmarked(err error) error {
	if c.marked == nil {
		return err
	}
	switch e := err.(type) {
	case *timeout.Error:
		if e.Err == c.marked {
			return &timeout.Error{Name: e.Name, Limit: e.Limit, Err: c.raw}
		}
	case *pipeline.RanError:
		if e.Err == c.marked {
			return &pipeline.RanError{Err: c.raw}
		}
	default:
		if err == c.marked {
			return c.raw
		}
	}
	return err
}

// end closes whatever nobody else will, also while a panic or runtime.Goexit unwinds.
func (c *call) end() {
	if c.host != nil {
		defer c.hosts.leave(c.host)
	}
	if !c.given && c.req.Body != nil {
		defer c.req.Body.Close()
	}
	if c.sending != nil {
		defer c.sending.Close()
	}
	if c.done {
		return
	}
	if c.parked != nil {
		defer c.parked.close()
	}
	if c.got != nil && c.got.Body != nil {
		defer c.got.Body.Close()
	}
}

// bodiless says that there is nothing to read, by the protocol's rules: HTTP/2's transport has an empty body of its own for it.
func bodiless(req *http.Request, resp *http.Response) bool {
	return !hasBody(resp.Body) || req.Method == http.MethodHead ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
}

// hasBody says that there is something to send, or to read.
func hasBody(body io.ReadCloser) bool { return body != nil && body != http.NoBody }
