package httpx

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/limit"
)

const (
	drainBytes = 64 << 10
	drainTime  = 500 * time.Millisecond
)

var network clock.Clock // real time

// parked is a response whose status is a failure, until it is known what becomes of it: the call's result, undrained, or
// discarded for a retry. From the moment at which a retry is certain, but for a guard that refuses it, it is read ahead: its
// connection is free again, and the end of its attempt's time does not cut it.
type parked struct {
	resp   *http.Response
	empty  bool // there is no body
	ctx    context.Context
	reader *body  // holds ctx, and is the caller's, if it is taken; nil = nothing to hold
	offer  *offer // nil = there is no body, or more than would be drained, or no retry

	ahead   *ahead // nil = not a byte was read
	reading int64  // since when ahead reads, in real time: the network's, whatever clock the pipeline has
}

// offer is what the failure knows of its response: that it may be read ahead. Withdrawn, it knows nothing, so that an error that
// is kept keeps no response, and one that comes back to another retry touches no body that has found its reader.
type offer struct {
	mu     sync.Mutex
	parked *parked // nil = accepted or withdrawn
}

func (o *offer) accept() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.parked; p != nil {
		o.parked = nil
		p.ahead, p.reading = newAhead(p.resp), network.Now()
		go p.read()
	}
}

func (o *offer) withdraw() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.parked = nil
}

// offered is for a response that may give way to a retry.
func (p *parked) offered() *offer {
	if p.empty || p.resp.ContentLength > drainBytes {
		return nil
	}
	p.offer = &offer{parked: p}
	return p.offer
}

func (p *parked) read() {
	if p.ahead.run() && p.reader != nil {
		p.reader.letGo()
	}
}

// begun is what reads ahead. If nothing does, nothing will.
func (p *parked) begun() *ahead {
	if p.offer != nil {
		p.offer.withdraw()
		p.offer = nil
	}
	return p.ahead
}

// discard drains and closes. ctx is that of the next attempt, whose time this takes.
func (p *parked) discard(ctx context.Context, clk clock.Clock) {
	defer p.close()
	ahead := p.begun()
	if ahead == nil || ahead.arrived() {
		return
	}
	wait := drainTime - time.Duration(network.Now()-p.reading)
	if left, ok := clk.Left(ctx); ok {
		wait = min(wait, left/4)
	}
	if wait <= 0 {
		return
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	select {
	case <-ahead.done:
	case <-enough.C:
	case <-ctx.Done():
	}
}

// close also ends a read that is under way: by the end of its context.
func (p *parked) close() {
	if p.reader != nil {
		defer p.reader.letGo()
	}
	if ahead := p.begun(); ahead != nil {
		_ = ahead.Close()
		return
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
	resp, body, whole := p.resp, p.resp.Body, false
	over := p.ctx.Err() != nil || expired(p.ctx) // asked first: reading ahead ends the context, once everything is here
	if ahead := p.begun(); ahead != nil {
		resp, whole = ahead.take()
		body = ahead
	}
	if !whole && over {
		return nil
	}
	if p.reader != nil {
		body = p.reader.around(body)
	}
	resp.Body = body
	return resp
}

// expired says that ctx's time is over though, on a busy machine, its timer may not have said so yet.
func expired(ctx context.Context) bool {
	l, ok := ctx.(*limit.Ctx)
	return ok && l.Left() == 0
}
