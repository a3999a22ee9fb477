package httpx

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/leaf/timeout"
)

const (
	drainBytes = 64 << 10
	drainTime  = 500 * time.Millisecond
	// patience is how long a response waits untouched: decisions take microseconds, so that afterwards it is a backoff.
	patience = 25 * time.Millisecond
)

// parked is a response whose status is a failure, until it is known what becomes of it: the call's result, undrained, or
// discarded for a retry. One that waits longer, for the backoff of its retry, is read ahead: its connection is free again,
// and the end of its attempt's time does not cut it.
type parked struct {
	resp    *http.Response
	empty   bool // there is no body
	ctx     context.Context
	reader  *body  // the caller's, if it is taken; nil = ctx is not the pipeline's to keep
	release func() // of ctx; nil = nothing kept
	ahead   *ahead // nil = there is no body, or more than would be drained, or no retry
	timer   *time.Timer
	reading time.Time // when ahead begins to read
}

func park(ctx context.Context, resp *http.Response, empty bool, reader *body) *parked {
	p := &parked{resp: resp, empty: empty, ctx: ctx, reader: reader}
	if reader != nil {
		p.release = timeout.Keep(ctx)
	}
	return p
}

// readAhead is for a response that may give way to a retry.
func (p *parked) readAhead(clk clock.Clock) {
	if p.empty || p.resp.ContentLength > drainBytes {
		return
	}
	wait := patience
	if left, ok := clk.Left(p.ctx); ok && clk.Real() {
		wait = min(wait, left/2)
	}
	p.ahead = newAhead(p.resp.Body)
	p.reading = time.Now().Add(wait)
	p.timer = time.AfterFunc(wait, p.read) // network time, whatever clock the pipeline has
}

func (p *parked) read() {
	if p.ahead.run() && p.release != nil {
		p.release()
	}
}

// discard drains and closes. ctx is that of the next attempt, whose time this takes.
func (p *parked) discard(ctx context.Context, clk clock.Clock) {
	defer p.close()
	if p.ahead == nil {
		return
	}
	if p.timer.Stop() {
		p.reading = time.Now()
		go p.read()
	}
	wait := drainTime - time.Since(p.reading)
	if left, ok := clk.Left(ctx); ok {
		wait = min(wait, left/4)
	}
	if wait <= 0 {
		return
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	select {
	case <-p.ahead.done:
	case <-enough.C:
	case <-ctx.Done():
	}
}

// close also ends a read that is under way.
func (p *parked) close() {
	if p.release != nil {
		defer p.release()
	}
	if p.ahead != nil {
		p.timer.Stop()
		p.ahead.taken.Store(true)
	}
	if p.resp.Body != nil {
		_ = p.resp.Body.Close()
	}
}

// take is the response for the caller; nil where its time was over before it was read.
func (p *parked) take() *http.Response {
	if p.empty {
		return p.resp
	}
	body, whole := p.resp.Body, false
	over := p.ctx.Err() != nil // asked first: reading ahead ends the context, once everything is here
	if p.ahead != nil && !p.timer.Stop() {
		whole = p.ahead.take()
		body = struct {
			io.Reader
			io.Closer
		}{p.ahead, p.resp.Body}
	}
	if !whole && over {
		return nil
	}
	if p.release != nil {
		body = p.reader.around(body, p.ctx, p.release)
	}
	p.resp.Body = body
	return p.resp
}
