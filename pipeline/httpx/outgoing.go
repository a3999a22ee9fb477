package httpx

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/internal/limit"
)

// sent is what an attempt needs beyond the call itself, in one piece: its copy of the request, and the reader that its
// response's body gets. Neither is used again: a base may hold on to both for as long as it likes.
type sent struct {
	request http.Request
	budget  [1]string
	body    body
}

var errNoBody = errors.New("it returned neither a body nor an error")

// outgoing is the request of this run: the caller's own, or a copy where anything of it changes.
func (c *call) outgoing(ctx context.Context) (*http.Request, error) {
	again := c.runs > 1 && hasBody(c.req.Body)
	if _, limited := ctx.(*limit.Ctx); !limited && !c.bound && !again { // ctx is the caller's: it was asked where that costs less
		return c.req, nil
	}
	left, limited := c.left(ctx)
	c.own = limited && own(ctx, c.ctx)
	c.sent = &sent{request: *c.req.WithContext(ctx)}
	req := &c.sent.request
	if limited {
		req.Header = maps.Clone(c.req.Header)
		if req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header[budget.Header] = c.budgets.of(left, c.own, &c.sent.budget)
	}
	if again {
		body, err := c.req.GetBody()
		if err == nil && body == nil {
			err = errNoBody
		}
		if err != nil {
			return nil, &bodyError{attempt: c.runs, err: err}
		}
		req.Body = body
	}
	return req, nil
}

// own says that the pipeline made ctx: it is then a limit of its timeouts. Contexts in general cannot be compared.
func own(ctx, caller context.Context) bool {
	c, ok := ctx.(*limit.Ctx)
	if !ok {
		return false
	}
	outer, ok := caller.(*limit.Ctx)
	return !ok || c != outer
}

// left is what is left of ctx, on the pipeline's clock where ctx is its own.
func (c *call) left(ctx context.Context) (left time.Duration, limited bool) {
	if l, ok := ctx.(*limit.Ctx); ok {
		return l.Left(), true
	}
	return c.clock.Left(ctx)
}

// budgets makes values of the budget header. Under a timeout they are the same for most calls, to the millisecond; so the last
// one is kept. Requests share it, as the copies share the caller's other values: a RoundTripper modifies none.
type budgets struct{ last atomic.Pointer[budgetValue] }

type budgetValue struct {
	ms   int64
	text [1]string
}

// of is the value for left. A new one is kept or, where it is the caller's deadline that counts, put into slot: no other
// call will have it.
func (b *budgets) of(left time.Duration, keep bool, slot *[1]string) []string {
	ms := left.Milliseconds()
	switch v := b.last.Load(); {
	case v != nil && v.ms == ms:
		return v.text[:]
	case !keep:
		slot[0] = strconv.FormatInt(ms, 10)
		return slot[:]
	}
	v := &budgetValue{ms: ms, text: [1]string{strconv.FormatInt(ms, 10)}}
	b.last.Store(v)
	return v.text[:]
}
