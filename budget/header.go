package budget

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/jonboulle/clockwork"
)

// Header carries the time left, in integer milliseconds, rounded down.
const Header = "X-Request-Budget-Ms"

// Inject sets Header to the time left of ctx on clock (nil = real time), never below 0; without a deadline it leaves h alone.
func Inject(ctx context.Context, clock clockwork.Clock, h http.Header) {
	if left, ok := Left(ctx, clock); ok {
		h.Set(Header, strconv.FormatInt(left.Milliseconds(), 10))
	}
}

// FromHeader is ctx with the deadline that Header asks for, never later than ctx's own; 0 is expired already.
// What is absent, no plain number, negative or too large for a Duration is ignored, as is a header that was sent more
// than once. Always call cancel. It runs on real time, as package context does.
func FromHeader(ctx context.Context, h http.Header) (context.Context, context.CancelFunc) {
	values := h.Values(Header)
	if len(values) != 1 {
		return context.WithCancel(ctx)
	}
	d, ok := parseMillis(values[0])
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d) // keeps an earlier deadline of ctx
}

// parseMillis takes ASCII digits alone: strconv would also take a sign.
func parseMillis(s string) (time.Duration, bool) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	var ms int64
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		if ms = 10*ms + int64(c-'0'); ms > most { // most×10+9 still fits: it is caught before it can overflow
			return 0, false
		}
	}
	return time.Duration(ms) * time.Millisecond, s != ""
}
