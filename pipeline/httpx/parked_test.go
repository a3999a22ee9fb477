package httpx

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A response is taken in the instant at which reading it ahead comes to the end and lets go of its context: it is whole.
func TestTakenAsReadingAheadEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun, finish, released := make(chan struct{}), make(chan struct{}), make(chan struct{})
	rc := io.NopCloser(readFunc(func([]byte) (int, error) {
		close(begun)
		<-finish
		return 0, io.EOF
	}))
	var kept body
	p := &parked{
		resp: &http.Response{Body: rc}, ahead: newAhead(rc), reader: &kept,
		ctx:     asked{ctx, sync.OnceFunc(func() { close(finish); <-released })},
		release: sync.OnceFunc(func() { cancel(); close(released) }),
	}
	p.timer = time.AfterFunc(0, p.read)
	<-begun
	resp := p.take()
	require.NotNil(t, resp)
	_, err := resp.Body.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	require.NoError(t, resp.Body.Close())
}

// asked is a context that does something before it tells whether it is over.
type asked struct {
	context.Context
	before func()
}

func (a asked) Err() error { a.before(); return a.Context.Err() }

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
