package rediscooldown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"
)

// Cooldown is a leaf.Guard that a fleet shares, safe for concurrent use. Make one with [New], and end it with Close.
type Cooldown struct {
	local *cooldown.Cooldown // what is known here
	clock clock.Clock
	store *redisscript.Store
	view  view
	news  news
}

var (
	_ leaf.Guard     = (*Cooldown)(nil)
	_ leaf.Trier     = (*Cooldown)(nil)
	_ leaf.Peeker    = (*Cooldown)(nil)
	_ leaf.Hinter    = (*Cooldown)(nil)
	_ leaf.Inspector = (*Cooldown)(nil)
)

// New makes the cooldown that all processes with the same Prefix and cfg.Name share. It sends nothing: a store that cannot be
// reached is no error of New's. Its error names each invalid field and its value.
func New(client redis.UniversalClient, cfg cooldown.Config, opts Options) (*Cooldown, error) {
	local, err := cooldown.New(cfg)
	store, storeErr := redisscript.Open(client, "rediscooldown", "cooldown", cfg.Name, opts.store())
	if err := errors.Join(err, storeErr); err != nil {
		return nil, err
	}
	c := &Cooldown{local: local, clock: clock.Of(cfg.Clock), store: store}
	c.view.init()
	return c, nil
}

// Acquire refuses with a *cooldown.Error before the instant and admits from it on; its permit is the zero one. A refusal costs
// no round trip. An admission costs none where the store was heard of less than 100 ms ago; else it waits for a read, no
// longer than Timeout and ctx allow. Where that fails, the outage policy decides. For a ctx that is done or ends meanwhile,
// the error is ctx's own.
func (c *Cooldown) Acquire(ctx context.Context) (leaf.Permit, error) {
	c.store.Repanic()
	if _, err := c.local.Acquire(ctx); err != nil { // its permit is the zero one, too
		return leaf.Permit{}, err
	}
	switch age := c.view.age(c.clock.Now()); {
	case age < fresh:
		return leaf.Permit{}, nil
	case age < stale:
		c.read()
		return leaf.Permit{}, nil
	}
	if err := c.wait(ctx); err != nil {
		return leaf.Permit{}, err
	}
	return c.local.Acquire(ctx)
}

// TryAcquire is Acquire.
func (c *Cooldown) TryAcquire(ctx context.Context) (leaf.Permit, error) { return c.Acquire(ctx) }

// Peek is the refusal of the instant that is known here, or nil. It asks nobody, and does not look at ctx.
func (c *Cooldown) Peek(ctx context.Context) error { return c.local.Peek(ctx) }

// Hint moves the instant to now+wait, capped at now+Max, here at once, and in the fleet as soon as the store has heard; only ever
// later. It does not wait for the store. wait <= 0 changes nothing.
func (c *Cooldown) Hint(ctx context.Context, wait time.Duration) {
	wait = min(wait, c.local.Config().Max)
	if wait <= c.local.Wait() {
		return
	}
	c.local.Hint(ctx, wait)
	c.tell(ctx, wait)
}

// Wait is the time until the instant that is known here; 0 = it admits.
func (c *Cooldown) Wait() time.Duration { return c.local.Wait() }

// Inspect is the local cooldown's: kind "cooldown", state "clear" or "cooling", gauge "wait_seconds" (limit Max in seconds).
func (c *Cooldown) Inspect() leaf.Snapshot { return c.local.Inspect() }

// Update changes the parameters and keeps the instant (at most the new Max ahead, here; the fleet's stays). Name and Clock may not
// change. An invalid cfg is an error and changes nothing.
func (c *Cooldown) Update(cfg cooldown.Config) error {
	if name := c.local.Config().Name; cfg.Name != name {
		return fmt.Errorf("rediscooldown: Name is %q: want %q: the name is the shared instance", cfg.Name, name)
	}
	return c.local.Update(cfg)
}

// Config is what is in force, defaults filled in.
func (c *Cooldown) Config() cooldown.Config { return c.local.Config() }

// Clock is Config's (nil = real time); used is true.
func (c *Cooldown) Clock() (clock clockwork.Clock, used bool) { return c.local.Clock() }

// Close brings the store a hint that it has not heard, as far as the store can be reached, ends every goroutine, and leaves the
// client open. It waits as long as ctx allows; its error says what it had to leave. It may be called again. Afterwards the store
// counts as one that cannot be asked. A hook must not call it: it waits for hooks that run.
func (c *Cooldown) Close(ctx context.Context) error {
	flush := c.flush(ctx)
	return errors.Join(flush, c.store.Close(ctx))
}
