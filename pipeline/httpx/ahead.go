package httpx

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
)

// ahead reads a response's body into memory, until somebody takes it: who reads then gets what was read, and after it the rest.
type ahead struct {
	of    *http.Response
	lent  http.Response // of, as it was: the last read writes the trailers into of, while its taker may look at them
	src   io.ReadCloser
	begun sync.WaitGroup // for run to begin
	taken atomic.Bool
	turn  atomic.Int32  // of closing src; see Close
	done  chan struct{} // closed when run has ended; what follows is run's before, and the reader's afterwards

	buf []byte // read and not handed out
	err error  // what src ended with
}

func newAhead(of *http.Response) *ahead {
	a := &ahead{of: of, lent: *of, src: of.Body, done: make(chan struct{})}
	a.lent.Trailer = maps.Clone(of.Trailer)
	if length := of.ContentLength; length >= 0 {
		a.buf = make([]byte, 0, min(length+1, 4<<10)) // one more, for the read that finds the end; a claim alone costs no more
	}
	a.begun.Add(1)
	return a
}

// Whose turn it is to close src.
const (
	whileRead  int32 = iota // run reads
	afterwards              // run closes it, once it has read
	anyTime                 // run has ended
)

// run reads until the end, to drainBytes, or until somebody takes over. It says whether it came to the end.
func (a *ahead) run() (whole bool) {
	defer a.stop()
	a.begun.Done()
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

// arrived says whether run has ended, once it has begun. Where the bytes are there already, it ends before it rests; and whoever
// it wakes when it begins runs, most often, when it rests. So a short answer is waited for without a timer.
func (a *ahead) arrived() bool {
	a.begun.Wait()
	return a.ended()
}

func (a *ahead) ended() bool { return a.turn.Load() == anyTime }

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

// stop ends run, also while runtime.Goexit unwinds. A body that panics here has nobody to tell.
func (a *ahead) stop() {
	defer close(a.done)
	if !a.turn.CompareAndSwap(whileRead, anyTime) {
		defer func() { _ = recover() }()
		_ = a.src.Close()
	}
}

// Close is for whoever took it, or discards it. io.ReadCloser promises nothing of a Close during a Read, and a body that decodes
// another keeps no lock: where run reads, run closes, as soon as that read has returned; the end of the attempt's context, which
// follows, sees to that. net/http's own bodies can be closed at once, context or not.
func (a *ahead) Close() error {
	a.taken.Store(true)
	if !a.ended() && !closesWhileRead(a.src) && (a.turn.CompareAndSwap(whileRead, afterwards) || a.turn.Load() == afterwards) {
		return nil
	}
	return a.src.Close()
}

// lockedBodies are those of net/http that keep a lock of their own, by type; its other bodies are only as good as what they are
// around. One that is missing here is closed after its read, like anybody's.
var lockedBodies = map[string]bool{
	"net/http.bodyEOFSignal": true, "net/http.gzipReader": true,
	"net/http.http2transportResponseBody": true, "net/http.http2gzipReader": true,
	"net/http/internal/http2.transportResponseBody": true, "net/http/internal/http2.gzipReader": true,
	"golang.org/x/net/http2.transportResponseBody": true,
}

func closesWhileRead(rc io.ReadCloser) bool {
	t := reflect.TypeOf(rc)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return lockedBodies[t.PkgPath()+"."+t.Name()]
}

func (a *ahead) tellTrailers() {
	if a.lent.Trailer == nil {
		a.lent.Trailer = a.of.Trailer
		return
	}
	maps.Copy(a.lent.Trailer, a.of.Trailer)
}
