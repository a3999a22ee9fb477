package httpx

import (
	"context"
	"net/http"
	"strings"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf/retry"
)

// visit is one request inside a server.
type visit struct {
	*server
	request *http.Request
	writer  *writer
	limited bool        // by the budget header
	before  description // of the answer, when the handler began
	ran     bool
	late    bool // the handler wrote nothing before its deadline
	aborted bool // the handler panicked with http.ErrAbortHandler, and its client had left
}

// serve runs the handler, whose failures must not be repeated.
func (v *visit) serve(ctx context.Context) (_ struct{}, err error) {
	v.ran = true
	r := v.request
	if v.limited || own(ctx, r.Context()) {
		r = r.WithContext(ctx)
		defer v.handBack(r)
	}
	v.before = describe(v.writer.Header())
	returned := false
	defer func() {
		if !returned && ctx.Err() == context.Canceled && v.abort(recover()) {
			err = retry.Permanent(ended.Err(ctx))
		}
	}()
	v.next.ServeHTTP(v.writer.as, r)
	returned = true
	status := v.writer.status()
	if status == 0 {
		if by := ctx.Err(); by != nil { // what an empty 200 would say is not known
			v.late = by == context.DeadlineExceeded
			return struct{}{}, retry.Permanent(ended.Err(ctx))
		}
	}
	if status >= 500 {
		return struct{}{}, retry.Permanent(newStatusError(status, v.writer.Header(), v.clock.Time))
	}
	return struct{}{}, nil
}

// abort tells a handler that gave up because its client had left, as httputil.ReverseProxy does when its copying fails, from
// one that panicked: a client's leaving says nothing of the handler.
func (v *visit) abort(value any) bool {
	if value == nil {
		return false
	}
	if value != http.ErrAbortHandler {
		panic(value)
	}
	v.aborted = true
	return true
}

// handBack lets those outside see what the handler found out in a copy of their request: a mux which pattern it was, with
// what values, and the server which temporary files of a form it has to remove. It writes what has changed alone: they
// may be reading the rest.
func (v *visit) handBack(r *http.Request) {
	o := v.request
	if o.Pattern != r.Pattern {
		o.Pattern = r.Pattern
		for _, part := range strings.Split(r.Pattern, "{")[1:] {
			name, _, _ := strings.Cut(part, "}")
			name, _, _ = strings.Cut(strings.TrimSuffix(name, "..."), ":") // other muxes have {name:expression}
			if value := r.PathValue(name); value != "" {
				o.SetPathValue(name, value)
			}
		}
	}
	if o.Form == nil {
		o.Form = r.Form
	}
	if o.PostForm == nil {
		o.PostForm = r.PostForm
	}
	if o.MultipartForm == nil {
		o.MultipartForm = r.MultipartForm
	}
}
