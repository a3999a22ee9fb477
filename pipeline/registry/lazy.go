package registry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/breaker/redisbreaker"
)

// lazyBreaker is a shared circuit that is made when it is first used: redisbreaker.New reads what the fleet knows, and loading
// never asks the store. Until then it is closed and empty, which is all that this process knows.
type lazyBreaker struct {
	client redis.UniversalClient
	opts   redisbreaker.Options
	local  *breaker.Breaker // its settings, and what is shown until the first use
	real   atomic.Pointer[redisbreaker.Breaker]

	mu     sync.Mutex
	cfg    breaker.Config // as it was given: with its defaults written out it might not be valid
	making chan struct{}  // closed when real was made; nil = nobody has asked yet
	err    error          // why it could not be made
	closed bool
}

var (
	_ breaker.Circuit = (*lazyBreaker)(nil)
	_ leaf.Trier      = (*lazyBreaker)(nil)
	_ leaf.Leaser     = (*lazyBreaker)(nil)
	_ leaf.Timed      = (*lazyBreaker)(nil)
)

func newLazyBreaker(cfg breaker.Config, client redis.UniversalClient, opts redisbreaker.Options) (*lazyBreaker, error) {
	local, err := breaker.New(cfg)
	if err != nil {
		return nil, err
	}
	return &lazyBreaker{client: client, opts: opts, local: local, cfg: cfg}, nil
}

// get is the shared circuit. The first to ask has it made, which takes one read of the store, at most its timeout; nobody waits
// for it longer than ctx lives. After Close it is nil where it was never made.
func (b *lazyBreaker) get(ctx context.Context) (*redisbreaker.Breaker, error) {
	if r := b.real.Load(); r != nil {
		return r, nil
	}
	if err := ended.Err(ctx); err != nil {
		return nil, err
	}
	made := b.begin()
	if made == nil {
		return nil, nil
	}
	select {
	case <-made:
	case <-ctx.Done():
		return nil, ended.Err(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.real.Load(), b.err
}

// begin has the circuit made once, off the caller's goroutine.
func (b *lazyBreaker) begin() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.making == nil && !b.closed {
		b.making = make(chan struct{})
		go b.make()
	}
	return b.making
}

func (b *lazyBreaker) make() {
	defer close(b.making)
	b.mu.Lock()
	cfg := b.cfg
	b.mu.Unlock()
	r, err := redisbreaker.New(b.client, cfg, b.opts)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.err = err
		return
	}
	_ = r.Update(b.cfg) // one that came meanwhile, and was found valid
	b.real.Store(r)
}

// Acquire is redisbreaker's; the first also waits for the read of the store.
func (b *lazyBreaker) Acquire(ctx context.Context) (leaf.Permit, error) {
	r, err := b.get(ctx)
	switch {
	case err != nil:
		return leaf.Permit{}, err
	case r == nil:
		return b.local.Acquire(ctx)
	}
	return r.Acquire(ctx)
}

// TryAcquire is Acquire.
func (b *lazyBreaker) TryAcquire(ctx context.Context) (leaf.Permit, error) { return b.Acquire(ctx) }

// known is what can be read without the store.
func (b *lazyBreaker) known() breaker.Circuit {
	if r := b.real.Load(); r != nil {
		return r
	}
	return b.local
}

// Peek, State, Snapshot and Inspect ask no store.
func (b *lazyBreaker) Peek(ctx context.Context) error { return b.known().Peek(ctx) }
func (b *lazyBreaker) State() breaker.State           { return b.known().State() }
func (b *lazyBreaker) Snapshot() breaker.Snapshot     { return b.known().Snapshot() }
func (b *lazyBreaker) Inspect() leaf.Snapshot         { return b.known().Inspect() }

// ForceOpen, ForceClosed, Auto and Reset act on the whole fleet.
func (b *lazyBreaker) ForceOpen(ctx context.Context) error {
	return b.control(ctx, breaker.Circuit.ForceOpen)
}
func (b *lazyBreaker) ForceClosed(ctx context.Context) error {
	return b.control(ctx, breaker.Circuit.ForceClosed)
}
func (b *lazyBreaker) Auto(ctx context.Context) error { return b.control(ctx, breaker.Circuit.Auto) }
func (b *lazyBreaker) Reset(ctx context.Context) error {
	return b.control(ctx, breaker.Circuit.Reset)
}

func (b *lazyBreaker) control(ctx context.Context, do func(breaker.Circuit, context.Context) error) error {
	r, err := b.get(ctx)
	switch {
	case err != nil:
		return err
	case r == nil:
		return do(b.local, ctx)
	}
	return do(r, ctx)
}

// Update changes the parameters of this process.
func (b *lazyBreaker) Update(cfg breaker.Config) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.local.Update(cfg); err != nil {
		return err
	}
	b.cfg = cfg
	if r := b.real.Load(); r != nil {
		return r.Update(cfg)
	}
	return nil
}

func (b *lazyBreaker) Config() breaker.Config                { return b.local.Config() }
func (b *lazyBreaker) Clock() (c clockwork.Clock, used bool) { return b.local.Clock() }
func (b *lazyBreaker) Lease() time.Duration                  { return b.local.Lease() }
func (b *lazyBreaker) WantsTook() bool                       { return b.local.WantsTook() }

// Close ends the shared circuit; one that was never made never will be.
func (b *lazyBreaker) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	making := b.making
	b.mu.Unlock()
	if making != nil {
		select {
		case <-making:
		case <-ctx.Done():
			return ended.Err(ctx)
		}
	}
	if r := b.real.Load(); r != nil {
		return r.Close(ctx)
	}
	return nil
}
