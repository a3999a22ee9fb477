package httpx

import (
	"math"
	"net/http"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

// always is the validity of what a method or a key declares.
const always = math.MaxInt64

// What is declared of requests that may be repeated by their method, of those that carry a key, and of a handler, which no
// retry ever repeats: a Strict policy asks for a declaration all the same. Each is made only here, not for every call.
var (
	byMethod = declare(retry.ReadOnly("method", always))
	byKey    = declare(retry.Idempotent("Idempotency-Key", always))
	once     = declare(retry.ReadOnly("once", always))
)

func declare(s retry.Safety) []pipeline.Option { return []pipeline.Option{pipeline.Declare(s)} }

// declaration is what is declared of the call's request; nil = nothing: it may not be repeated.
func (c *call) declaration() []pipeline.Option {
	if c.safety != nil {
		if s := c.safety(c.req); s != retry.Unsafe {
			c.declared[0] = pipeline.Declare(s)
			return c.declared[:]
		}
	}
	switch c.req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return byMethod
	}
	// As net/http has it, a key without any value declares the same and is not sent.
	if key, ok := c.req.Header["Idempotency-Key"]; ok && (len(key) == 0 || key[0] != "") {
		return byKey
	}
	return nil
}
