package redisbreaker

import (
	"context"
	"crypto/rand"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
)

// ForceOpen refuses everybody in the fleet until Auto or Reset: no probes, refusals have no wait. It survives the open time, and an
// outage of the store in every process that knows of it. Other processes learn of it as of every change: with their next flush,
// or their next poll. Its error is ctx's own, or a *leaf.StoreError; the fleet may have been forced all the same.
func (b *Breaker) ForceOpen(ctx context.Context) error { return b.control(ctx, "force_open") }

// ForceClosed admits everybody until Auto or Reset, and keeps counting. A circuit that is closed keeps its counts.
func (b *Breaker) ForceClosed(ctx context.Context) error { return b.control(ctx, "force_closed") }

// Auto ends the force: closed and empty; results of earlier calls change nothing. Without a force it does nothing.
func (b *Breaker) Auto(ctx context.Context) error { return b.control(ctx, "auto") }

// Reset closes fresh: no force, no counts, the first open time; results of earlier calls change nothing. The local breaker
// underneath is reset, too, in this process.
func (b *Breaker) Reset(ctx context.Context) error {
	if err := b.control(ctx, "reset"); err != nil {
		return err
	}
	return b.local.Reset(ctx)
}

func (b *Breaker) control(ctx context.Context, what string) error {
	if err := ended.Err(ctx); err != nil {
		return err
	}
	_, err := b.ask(ctx, redisscript.Call{
		Op: leaf.OpRecord, Script: control, Args: b.args(what, rand.Text()), Resend: true,
	}, nil)
	b.tell()
	return err
}
