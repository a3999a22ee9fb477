package breaker

import (
	"context"

	"github.com/fairlead/fairlead/leaf"
)

// Circuit is what the local breaker and one shared through a store have in common.
type Circuit interface {
	leaf.Guard
	leaf.Peeker
	leaf.Inspector
	State() State
	Snapshot() Snapshot
	ForceOpen(ctx context.Context) error
	ForceClosed(ctx context.Context) error
	Auto(ctx context.Context) error
	Reset(ctx context.Context) error
}

var _ Circuit = (*Breaker)(nil)

// ForceOpen refuses everybody until Auto or Reset: no probes, refusals have no wait. The local breaker's error is always nil.
func (b *Breaker) ForceOpen(context.Context) error { return b.control(forceOpen) }

// ForceClosed admits everybody until Auto or Reset, and keeps counting. A circuit that is closed keeps its counts.
func (b *Breaker) ForceClosed(context.Context) error { return b.control(forceClosed) }

// Auto ends the force: closed and empty; results of earlier calls change nothing. Without a force it does nothing.
func (b *Breaker) Auto(context.Context) error { return b.control(auto) }

// Reset closes fresh: no force, no counts, the first open time; results of earlier calls change nothing.
func (b *Breaker) Reset(context.Context) error { return b.control(reset) }

func (b *Breaker) control(kind eventKind) error {
	if b.apply(event{kind: kind}).changed {
		b.tell()
	}
	return nil
}
