package httpx

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/timeout"
)

// A response is taken in the instant at which reading it ahead comes to the end and lets go of its context: it is whole.
func TestTakenAsReadingAheadEnds(t *testing.T) {
	begun, finish, released := make(chan struct{}), make(chan struct{}), make(chan struct{})
	rc := io.NopCloser(readFunc(func([]byte) (int, error) {
		close(begun)
		<-finish
		return 0, io.EOF
	}))
	var kept body
	var ctx context.Context
	_, err := timeout.Do(t.Context(), timeout.MustNew(timeout.Config{Limit: time.Hour}), func(c context.Context) (int, error) {
		ctx = c
		kept.hold(c)
		return 0, nil
	})
	require.NoError(t, err)
	context.AfterFunc(ctx, func() { close(released) })
	p := &parked{
		resp: &http.Response{Body: rc}, reader: &kept,
		ctx: asked{ctx, sync.OnceFunc(func() { close(finish); <-released })},
	}
	p.offered().accept()
	<-begun
	resp := p.take()
	require.NotNil(t, resp)
	_, err = resp.Body.Read(make([]byte, 1))
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
