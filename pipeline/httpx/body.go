package httpx

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/limit"
)

// body is a response's body that holds its attempt's context until EOF or Close.
type body struct {
	rc   io.ReadCloser
	ctx  context.Context
	held atomic.Bool // what ends ctx before it is let go of is somebody else's doing
}

// hold keeps ctx alive, until letGo.
func (b *body) hold(ctx context.Context) {
	b.ctx = ctx
	limit.Hold(ctx)
	b.held.Store(true)
}

// letGo may be called any number of times, from any goroutine.
func (b *body) letGo() {
	if b.held.CompareAndSwap(true, false) {
		limit.Release(b.ctx)
	}
}

// around makes b the body around rc. It stays an io.Writer where rc is one: the body of a 101 is the connection.
func (b *body) around(rc io.ReadCloser) io.ReadCloser {
	b.rc = rc
	if w, ok := rc.(io.Writer); ok {
		return &duplex{body: b, Writer: w}
	}
	return b
}

type duplex struct {
	*body
	io.Writer
}

// Read tells what became of the connection: no timeout of ours cuts it.
func (d *duplex) Read(p []byte) (int, error) {
	n, err := d.rc.Read(p)
	if err == io.EOF {
		d.letGo()
	}
	return n, err
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
		b.letGo()
	default:
		if by := ended.Err(b.ctx); by != nil && b.held.Load() && !ended.Is(err, context.Cause(b.ctx)) { // asked in this order
			err = fmt.Errorf("%w: %w", by, err)
		}
	}
	return n, err
}

// Close lets go of the context last: what is unread may need it to end in order.
func (b *body) Close() error {
	defer b.letGo()
	return b.rc.Close()
}
