package leaf

import (
	"context"

	"github.com/fairlead/fairlead/internal/reading"
)

// noCopy lets go vet's copylocks find copies of a Permit.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Permit is one admission: a value that costs no allocation. It must not be copied after it was made (go vet says so);
// return NewPermit(…) directly. The zero Permit settles nothing. One goroutine uses it at a time.
type Permit struct {
	_       noCopy
	settler Settler
	token   uint64
}

// NewPermit makes the permit whose Settle calls s.Settle(ctx, token, o). A nil s makes the zero Permit.
func NewPermit(s Settler, token uint64) Permit {
	if s == nil {
		return Permit{}
	}
	return Permit{settler: s, token: token}
}

// Settle reports the outcome. It zeroes p first, so that each admission is settled exactly once: a second Settle,
// and one of the zero Permit, does nothing and returns nil. It also zeroes p when the Settler panics.
// The error is the Settler's; it feeds events only.
func (p *Permit) Settle(ctx context.Context, o Outcome) error {
	s, token := p.settler, p.token
	if s == nil {
		return nil
	}
	p.settler, p.token = nil, 0
	return s.Settle(ctx, token, o)
}

// settlerAt is a Settler that goes by time. quiet says that it took none.
type settlerAt interface {
	SettleAt(ctx context.Context, token uint64, o Outcome, now reading.Instant) (quiet bool, err error)
}

// SettleAt is Settle for a caller who has read real time just now: the pipeline, which shares the reading with others, where it
// knows that the settler is the guard that it asked. quiet says that the settler says that it took no time.
func (p *Permit) SettleAt(ctx context.Context, o Outcome, now reading.Instant) (quiet bool, err error) {
	at, ok := p.settler.(settlerAt)
	if !ok {
		return false, p.Settle(ctx, o)
	}
	token := p.token
	p.settler, p.token = nil, 0
	return at.SettleAt(ctx, token, o, now)
}
