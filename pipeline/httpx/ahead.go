package httpx

import (
	"fmt"
	"io"
	"sync/atomic"
)

// ahead reads a body into memory, until somebody takes it: who reads then gets what was read, and after it the rest.
type ahead struct {
	src   io.Reader
	taken atomic.Bool
	done  chan struct{} // closed when run has ended; what follows is run's before, and the reader's afterwards

	buf []byte // read and not handed out
	err error  // what src ended with
}

func newAhead(src io.Reader) *ahead { return &ahead{src: src, done: make(chan struct{})} }

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

// take ends run after the read that is under way; whole = everything is here.
func (a *ahead) take() (whole bool) {
	a.taken.Store(true)
	select {
	case <-a.done:
		return a.err == io.EOF
	default:
		return false
	}
}

// Read is for whoever took it. It waits for the read that was under way, as it would for its own.
func (a *ahead) Read(p []byte) (int, error) {
	<-a.done
	if len(a.buf) > 0 {
		n := copy(p, a.buf)
		a.buf = a.buf[n:]
		return n, nil
	}
	if a.err != nil {
		return 0, a.err
	}
	return a.src.Read(p)
}
