package httpx

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// writer notes which status went out. http.ResponseController reaches what it does not have through Unwrap.
type writer struct {
	http.ResponseWriter
	code atomic.Int32        // 0 = nothing was written; atomic, since a handler may leave a goroutine behind
	as   http.ResponseWriter // itself, or as a Hijacker
	own  hijackable          // around itself: here, so that it costs no allocation
}

func newWriter(w http.ResponseWriter) *writer {
	o := &writer{ResponseWriter: w}
	o.as = o
	if _, ok := behind[http.Hijacker](w); ok {
		o.own.writer = o
		o.as = &o.own
	}
	return o
}

// status is the final status that went out; 0 = none.
func (w *writer) status() int { return int(w.code.Load()) }

// note keeps the first final status. Informational ones, but for 101, are not final.
func (w *writer) note(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		w.code.CompareAndSwap(0, int32(code))
	}
}

// WriteHeader is http.ResponseWriter's. It notes only what went out: an invalid code panics there.
func (w *writer) WriteHeader(code int) {
	w.ResponseWriter.WriteHeader(code)
	w.note(code)
}

// Write is http.ResponseWriter's.
func (w *writer) Write(p []byte) (int, error) {
	w.note(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// WriteString is io.StringWriter's.
func (w *writer) WriteString(s string) (int, error) {
	w.note(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// sniffed is what net/http, too, copies by hand, before it lets the system send the rest.
const sniffed = 512

// ReadFrom lets the server send files in its own way.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	from, ok := w.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return io.Copy(struct{ io.Writer }{w}, r)
	}
	var n int64
	if w.status() == 0 { // an r that has nothing, or nothing in time, writes no header
		first, err := io.Copy(struct{ io.Writer }{w}, io.LimitReader(r, sniffed))
		if err != nil || first < sniffed {
			return first, err
		}
		n = first
	}
	rest, err := from.ReadFrom(r)
	return n + rest, err
}

// FlushError is what http.ResponseController asks for first. One that fails has sent the header all the same.
func (w *writer) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.note(http.StatusOK)
	}
	return err
}

// Flush is http.Flusher's.
func (w *writer) Flush() { _ = w.FlushError() }

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Push is http.Pusher's, whose contract lets a connection say that it cannot.
func (w *writer) Push(target string, opts *http.PushOptions) error {
	if p, ok := behind[http.Pusher](w.ResponseWriter); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// hijackable is a writer whose connection can be taken over.
type hijackable struct{ *writer }

// Hijack is http.Hijacker's.
func (w *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.note(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// behind looks for an interface behind writers that tell what they wrap, as http.ResponseController does.
func behind[T any](w http.ResponseWriter) (found T, ok bool) {
	for {
		if found, ok = w.(T); ok {
			return found, true
		}
		u, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return found, false
		}
		w = u.Unwrap()
	}
}
