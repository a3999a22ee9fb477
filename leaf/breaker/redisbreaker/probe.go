package redisbreaker

import (
	"context"
	"errors"
	"strconv"

	"github.com/fairlead/fairlead/internal/breaking"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// probe asks the store for a probe's lease.
func (b *Breaker) probe(ctx context.Context, v *view) (leaf.Permit, error) {
	p := b.policy.Load()
	n, released := b.probes.number()
	e := &entry{probe: b.id + "." + strconv.FormatUint(n, 10), unbound: p.ProbeLease == breaker.NoLease}
	sent := b.now()
	a, err := b.ask(ctx, redisscript.Call{
		Op: leaf.OpAdmit, Script: admit, Args: b.args(e.probe, p.lease(), p.Probes), Resend: true,
		Late: func(r redisscript.Reply) {
			if late, err := parse(r); err == nil {
				b.takeBack(e, late)
				b.tell()
			}
		},
	}, nil)
	b.tellHolding(e, a)
	if err != nil {
		return b.unreachable(ctx, err)
	}
	switch a.verdict {
	case probeAdmitted:
		e.gen = a.gen
		return leaf.NewPermit(b, b.probes.add(e)<<1|entryToken), nil
	case foundClosed:
		// What the store has just said counts, whatever has happened since: the permit is of its generation, or of none.
		serial := uint64(0)
		if now := b.view.Load(); now.state == breaker.Closed && now.gen == a.gen {
			serial = now.serial
		}
		return leaf.NewPermit(b, serial<<1|closedToken), nil
	}
	if a.state == breaker.HalfOpen {
		if now := b.view.Load(); now.gen == a.gen {
			b.probes.refuse(now.serial, released, sent, a.wait)
		}
	}
	return leaf.Permit{}, b.refusal(breaker.OpenError{State: a.state, Wait: a.wait, Cause: v.cause})
}

// tellHolding gives the lease back where a hook ends the goroutine: then nobody ever gets the permit.
func (b *Breaker) tellHolding(e *entry, a answer) {
	told := false
	defer func() {
		if !told {
			b.takeBack(e, a)
		}
	}()
	b.tell()
	told = true
}

// takeBack gives a lease back that nobody waits for any more.
func (b *Breaker) takeBack(e *entry, a answer) {
	if a.verdict == probeAdmitted {
		unwanted := &entry{probe: e.probe, gen: a.gen, unbound: e.unbound}
		_ = b.settleProbe(context.Background(), unwanted, breaking.Neutral, nil) // else the lease ends by itself
	}
}

// unreachable is the outage policy, where a probe's lease cannot be had.
func (b *Breaker) unreachable(ctx context.Context, err error) (leaf.Permit, error) {
	if _, failed := errors.AsType[*leaf.StoreError](err); !failed {
		return leaf.Permit{}, err // ctx's own
	}
	switch b.opts.OnOutage {
	case leaf.FailOpen:
		return leaf.NewPermit(b, closedToken), nil
	case leaf.FailClosed:
		return leaf.Permit{}, err
	}
	b.lookAgain()
	return b.acquireLocal(ctx, 0)
}

// lookAgain: with the end of the open time it is the local breaker that decides.
func (b *Breaker) lookAgain() {
	b.mu.Lock()
	b.observe("store failed")
	b.mu.Unlock()
	b.tell()
}

// settleProbe tells the store how a probe ended.
func (b *Breaker) settleProbe(ctx context.Context, e *entry, is breaking.Result, cause error) error {
	result := 0
	switch {
	case is&breaking.Failed != 0:
		result = 2
	case is&breaking.Succeeded != 0:
		result = 1
	}
	if e.unbound && result == 0 {
		return nil // it took nothing, and says nothing
	}
	defer b.probes.release() // a hook may end the goroutine
	p := b.policy.Load()
	u := -1.0
	if result == 2 {
		u = p.jitter()
	}
	a, err := b.ask(ctx, redisscript.Call{Op: leaf.OpRecord, Script: settle, Resend: true, Args: b.args(
		e.gen, e.probe, result, p.ProbeSuccesses, flag(e.unbound), microsUp(p.OpenFor), exact(p.OpenGrowth), microsUp(p.MaxOpenFor), exact(u),
	)}, cause)
	b.tell()
	if err == nil && a.verdict == countedLate {
		b.store.Overage(ctx, leaf.OpRecord, errLate)
	}
	return err
}

// errLate is what OnStore is told of a probe that outlasted its lease: meanwhile another one may have taken its slot.
var errLate = errors.New("redisbreaker: the probe's lease was over before its result came")
