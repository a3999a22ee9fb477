package httpx

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/fairlead/fairlead/internal/ended"
)

// body is a response's body that holds its attempt's context until EOF or Close.
type body struct {
	rc      io.ReadCloser
	ctx     context.Context
	release func() // any number of times
	closed  atomic.Bool
}

// around makes b the body around rc. It stays an io.Writer where rc is one: the body of a 101 is the connection.
func (b *body) around(rc io.ReadCloser, ctx context.Context, release func()) io.ReadCloser {
	b.rc, b.ctx, b.release = rc, ctx, release
	if w, ok := rc.(io.Writer); ok {
		return &duplex{body: b, Writer: w}
	}
	return b
}

type duplex struct {
	*body
	io.Writer
}

// CloseWrite is what httputil.ReverseProxy looks for, as net/http's own body of a 101 has it.
func (d *duplex) CloseWrite() error {
	if half, ok := d.Writer.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return fmt.Errorf("httpx: CloseWrite: %w", http.ErrNotSupported)
}

// Read tells whose time was over, where that is what ended the body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	switch {
	case err == nil:
	case err == io.EOF:
		b.release()
	case !b.closed.Load():
		if by := ended.Err(b.ctx); by != nil && !ended.Is(err, context.Cause(b.ctx)) {
			err = fmt.Errorf("%w: %w", by, err)
		}
	}
	return n, err
}

// Close releases the context last: what is unread may need it to end in order.
func (b *body) Close() error {
	defer b.release()
	b.closed.Store(true)
	return b.rc.Close()
}
