package httpx

import (
	"errors"
	"net/http"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// Middleware puts p around a handler; see the package's text for what is answered when. It is safe for concurrent use, and so
// is p. Of the options it takes [Clock] alone. Wrong options, a nil p and a nil handler are a 500 for every request, whose text
// names the mistake: there is no error to return, and no request gets further, so that the first one of a test finds it.
func Middleware(p *pipeline.Pipeline, opts ...Option) func(http.Handler) http.Handler {
	c, bad := configure(true, p, opts)
	return func(next http.Handler) http.Handler {
		if bad == nil && next == nil {
			bad := errors.New("httpx: the handler is nil: want one")
			return misconfigured(bad)
		}
		if bad != nil {
			return misconfigured(bad)
		}
		return &server{config: c, pipeline: p, next: next}
	}
}

// misconfigured says what is wrong: it names fields and values of the program, and nothing of a request.
func misconfigured(bad error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem{Status: http.StatusInternalServerError, Detail: bad.Error()}.write(w)
	})
}

type server struct {
	config
	pipeline *pipeline.Pipeline
	next     http.Handler
}

// ServeHTTP is http.Handler's.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, limited := r.Context(), false
	if _, sent := r.Header[budget.Header]; sent {
		given, cancel := budget.FromHeader(ctx, r.Header)
		defer cancel()
		if given.Err() != nil && ctx.Err() == nil {
			late.write(w)
			return
		}
		ctx, limited = given, true
	}
	v := visit{server: s, request: r, writer: newWriter(w), limited: limited}
	_, report, err := pipeline.DoDetailed(ctx, s.pipeline, v.serve, once...)
	if v.aborted {
		panic(http.ErrAbortHandler)
	}
	if answer, ok := v.answer(err, &report); ok {
		if v.ran {
			v.before.restore(w.Header())
		}
		answer.write(w)
	}
}

// answer is what to write where the handler has not; ok is false where there is nothing to add.
func (v *visit) answer(err error, report *pipeline.Report) (answer problem, ok bool) {
	switch {
	case err == nil, v.writer.status() != 0:
		return answer, false
	case v.ran:
		return late, v.late
	case report.Disposition == pipeline.Rejected || rejection.Is(err):
		return refused(err, report), true
	case report.Disposition == pipeline.Expired:
		return late, true
	case report.Disposition == pipeline.Cancelled:
		return gone, true
	}
	return broken, true
}

// refused is 429 for what a limit of this server refused, and 503 for anything else.
func refused(err error, report *pipeline.Report) problem {
	wait, _ := rejection.RetryAfter(err)
	if limited(err, report.Layer) {
		return problem{Status: http.StatusTooManyRequests, Detail: "The rate limit was reached. The request was not handled.", RetryAfter: rejection.Seconds(wait)}
	}
	return problem{Status: http.StatusServiceUnavailable, Detail: "The request was refused before it was handled.", RetryAfter: rejection.Seconds(wait)}
}

var (
	late   = problem{Status: http.StatusGatewayTimeout, Detail: "The time for the request was over before there was an answer."}
	gone   = problem{Status: http.StatusServiceUnavailable, Detail: "The request was cancelled before it was handled."}
	broken = problem{Status: http.StatusInternalServerError, Detail: "The request could not be handled."}
)
