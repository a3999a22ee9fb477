package httpx

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync/atomic"
)

// ahead reads a response's body into memory, until somebody takes it: who reads then gets what was read, and after it the rest.
type ahead struct {
	of    *http.Response
	lent  http.Response // of, as it was: the last read writes the trailers into of, while its taker may look at them
	src   io.Reader
	taken atomic.Bool
	done  chan struct{} // closed when run has ended; what follows is run's before, and the reader's afterwards

	buf []byte // read and not handed out
	err error  // what src ended with
}

func newAhead(of *http.Response) *ahead {
	a := &ahead{of: of, lent: *of, src: of.Body, done: make(chan struct{})}
	a.lent.Trailer = maps.Clone(of.Trailer)
	return a
}

// run reads until the end, to drainBytes, or until somebody takes over: closing src ends a read that lasts. It says
// whether it came to the end.
func (a *ahead) run() (whole bool) {
	defer close(a.done)
	for idle := 0; idle < 100 && !a.taken.Load() && len(a.buf) < drainBytes; idle++ {
		n := a.step()
		if a.err != nil {
			return a.err == io.EOF
		}
		if n > 0 {
			idle = 0
		}
	}
	return false
}

// step reads once. A body that panics does so on the caller's goroutine or not at all.
func (a *ahead) step() (n int) {
	defer func() {
		if v := recover(); v != nil {
			a.err = fmt.Errorf("httpx: reading the response's body panicked: %v", v)
		}
	}()
	if len(a.buf) == cap(a.buf) {
		bigger := make([]byte, len(a.buf), min(max(512, 2*cap(a.buf)), drainBytes))
		copy(bigger, a.buf)
		a.buf = bigger
	}
	n, a.err = a.src.Read(a.buf[len(a.buf):cap(a.buf)])
	a.buf = a.buf[:len(a.buf)+n]
	return n
}

// take ends run after the read that is under way, and gives the response whose body is to be read here; whole = everything is.
func (a *ahead) take() (resp *http.Response, whole bool) {
	a.taken.Store(true)
	select {
	case <-a.done:
		return a.of, a.err == io.EOF
	default:
		return &a.lent, false
	}
}

// Read is for whoever took it. It waits for the read that was under way, as it would for its own.
func (a *ahead) Read(p []byte) (n int, err error) {
	<-a.done
	switch {
	case len(a.buf) > 0:
		n = copy(p, a.buf)
		a.buf = a.buf[n:]
		return n, nil
	case a.err != nil:
		err = a.err
	default:
		a.buf = nil // what is read from now on needs none
		n, err = a.src.Read(p)
	}
	if err == io.EOF {
		a.tellTrailers()
	}
	return n, err
}

func (a *ahead) tellTrailers() {
	if a.lent.Trailer == nil {
		a.lent.Trailer = a.of.Trailer
		return
	}
	maps.Copy(a.lent.Trailer, a.of.Trailer)
}
