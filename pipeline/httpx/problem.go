package httpx

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// problem is an answer of RFC 9457. Its type is about:blank, so that title is the status's own.
type problem struct {
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	RetryAfter int    `json:"retry_after,omitempty"` // seconds, as in the header; 0 = none
}

// write answers with p alone: what a handler had meant to send along belongs to another body. Content-Encoding stays,
// since it may be a compressing middleware's outside of this one.
func (p problem) write(w http.ResponseWriter) {
	p.Title = http.StatusText(p.Status)
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	h := w.Header()
	for _, name := range []string{"Content-Length", "Etag", "Last-Modified", "Cache-Control", "Expires", "Accept-Ranges", "Trailer"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}
