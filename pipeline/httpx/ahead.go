package httpx

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// ahead reads a body into memory, until somebody takes it: who reads then gets what was read, and after it the rest.
type ahead struct {
	src   io.Reader
	done  chan struct{} // closed when run has ended
	taken atomic.Bool

	mu  sync.Mutex // whoever reads src holds it; closing src ends a read without it
	buf []byte     // read and not handed out
	err error      // what src ended with
}

func newAhead(src io.Reader) *ahead { return &ahead{src: src, done: make(chan struct{})} }

// run reads until the end, to drainBytes, or until somebody takes over. It says whether it came to the end.
func (a *ahead) run() (whole bool) {
	defer close(a.done)
	for idle := 0; idle < 100 && !a.taken.Load(); idle++ {
		n, more := a.step()
		if !more {
			break
		}
		if n > 0 {
			idle = 0
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err == io.EOF
}

// step reads once. A body that panics does so on the caller's goroutine or not at all.
func (a *ahead) step() (n int, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil || len(a.buf) >= drainBytes {
		return 0, false
	}
	defer func() {
		if v := recover(); v != nil {
			a.err, more = fmt.Errorf("httpx: reading the response's body panicked: %v", v), false
		}
	}()
	if len(a.buf) == cap(a.buf) {
		bigger := make([]byte, len(a.buf), min(max(512, 2*cap(a.buf)), drainBytes))
		copy(bigger, a.buf)
		a.buf = bigger
	}
	n, err := a.src.Read(a.buf[len(a.buf):cap(a.buf)])
	a.buf, a.err = a.buf[:len(a.buf)+n], err
	return n, err == nil
}

// take ends run after the read that is under way; whole = everything is here.
func (a *ahead) take() (whole bool) {
	a.taken.Store(true)
	select {
	case <-a.done:
	default:
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err == io.EOF
}

// Read is for whoever took it.
func (a *ahead) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
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
