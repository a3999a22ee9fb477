package httpx

import (
	"math"
	"net/http"

	"github.com/fairlead/fairlead/leaf/retry"
)

// always is the validity of what a method or a key declares.
const always = math.MaxInt64

// byMethod is declared for requests that may be repeated by their method, byKey for those that carry a key, once for a
// handler, which no retry ever repeats: a Strict policy asks for a declaration all the same.
var (
	byMethod = retry.ReadOnly("method", always)
	byKey    = retry.Idempotent("Idempotency-Key", always)
	once     = retry.ReadOnly("once", always)
)

// repeatable says whether req may be sent again, and what is declared of it.
func (c *config) repeatable(req *http.Request) (repeat bool, s retry.Safety) {
	if c.safety != nil {
		s = c.safety(req)
	}
	if s == retry.Unsafe {
		s = declared(req)
	}
	return s != retry.Unsafe && (!hasBody(req.Body) || req.GetBody != nil), s
}

func declared(req *http.Request) retry.Safety {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return byMethod
	}
	// As net/http has it, a key without any value declares the same and is not sent.
	if key, ok := req.Header["Idempotency-Key"]; ok && (len(key) == 0 || key[0] != "") {
		return byKey
	}
	return retry.Unsafe
}
