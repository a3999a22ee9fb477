package httpx

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// problem is an answer of RFC 9457. Its type is about:blank, so that title is the status's own.
type problem struct {
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	RetryAfter int    `json:"retry_after,omitempty"` // seconds, as in the header; 0 = none
}

// write answers with p alone. A length would be another body's, whoever set it.
func (p problem) write(w http.ResponseWriter) {
	p.Title = http.StatusText(p.Status)
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}

// described are the fields that describe one answer's own body, or what is to be done with it.
var described = map[string]bool{
	"Accept-Ranges": true, "Cache-Control": true, "Content-Digest": true, "Content-Disposition": true, "Content-Encoding": true,
	"Content-Language": true, "Content-Location": true, "Content-Md5": true, "Content-Range": true, "Etag": true, "Expires": true,
	"Last-Modified": true, "Location": true, "Repr-Digest": true, "Retry-After": true, "Trailer": true, "Transfer-Encoding": true,
}

// description is what a header said of these before the handler ran: a middleware outside may have set some, as
// Content-Encoding, since it compresses whatever answer comes. Nil = nothing.
type description map[string][]string

func describe(h http.Header) (found description) {
	for name, values := range h {
		if described[name] {
			if found == nil {
				found = description{}
			}
			found[name] = values
		}
	}
	return found
}

// restore takes back what the handler said of an answer that it never gave. Anything else that it set stays: without its
// Access-Control-Allow-Origin, say, nobody could read the answer that takes its place.
func (before description) restore(h http.Header) {
	for name := range h {
		if described[name] || strings.HasPrefix(name, http.TrailerPrefix) {
			delete(h, name)
		}
	}
	maps.Copy(h, before)
}
