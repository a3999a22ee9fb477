package redisbreaker

import (
	"context"

	"github.com/fairlead/fairlead/internal/breaking"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// The local breaker runs underneath all the time, fed with every result, so that it knows its own mind when the store fails.

// localDecides says whether the local breaker is the one to ask: in an outage with leaf.FailLocal, where nothing that is known of
// the fleet refuses or was forced.
func (b *Breaker) localDecides(v *view, now int64) bool {
	if !b.out.Load() || b.opts.OnOutage != leaf.FailLocal || v.forced {
		return false
	}
	_, known := v.refuses(now)
	return !known
}

// acquireLocal admits by the local breaker; serial is the fleet's generation that the call belongs to, 0 = none.
func (b *Breaker) acquireLocal(ctx context.Context, serial uint64) (leaf.Permit, error) {
	e := &entry{serial: serial}
	var err error
	if e.permit, err = b.local.Acquire(ctx); err != nil {
		return leaf.Permit{}, err
	}
	return leaf.NewPermit(b, b.probes.add(e)<<1|entryToken), nil
}

// beneathToo lets the local breaker see a result that it did not admit. Where it is open it would have refused; when its open time
// is over, the result is as good as a probe's.
func (b *Breaker) beneathToo(is breaking.Result, err error) {
	if is == breaking.Neutral {
		return
	}
	var p leaf.Permit
	var refused error
	if p, refused = b.local.Acquire(context.Background()); refused != nil {
		return
	}
	_ = p.Settle(context.Background(), judged(is, err)) // the local breaker's error is always nil
}

// judged is an outcome of which a breaker without an IsFailure finds exactly is.
func judged(is breaking.Result, err error) leaf.Outcome {
	var o leaf.Outcome
	switch {
	case is&breaking.Failed != 0:
		o = leaf.Outcome{Verdict: leaf.TimedOut, Err: err}
	case is&breaking.Succeeded != 0:
		o = leaf.Outcome{Verdict: leaf.Returned}
	case is&breaking.Slow != 0:
		o = leaf.Outcome{Verdict: leaf.CallerCancelled}
	default:
		o = leaf.Outcome{Verdict: leaf.Ignored}
	}
	if is&breaking.Slow != 0 {
		o.Took = 1<<63 - 1
	}
	return o
}

// localChanged is the local breaker's OnChange.
func (b *Breaker) localChanged(c breaker.Change) {
	b.mu.Lock()
	b.beneath = c
	b.observe("")
	b.mu.Unlock()
	b.tell()
}

// storeTold is the store's OnStore.
func (b *Breaker) storeTold(ctx context.Context, e leaf.StoreEvent) {
	b.weigh()
	b.tell()
	if b.opts.OnStore != nil {
		b.opts.OnStore(ctx, e)
	}
}

// weigh finds out whether there is an outage. Only the store knows: events and errors of calls that end side by side may come in
// any order.
func (b *Breaker) weigh() {
	b.mu.Lock()
	defer b.mu.Unlock()
	down := b.store.Down()
	if b.out.Load() == down {
		return
	}
	b.out.Store(down)
	if down {
		b.observe("store failed")
	} else {
		b.observe("store recovered")
	}
}

// observe puts a change where what callers see has changed. It is called under mu. why is "" where the one that decides knows.
func (b *Breaker) observe(why string) {
	v := b.view.Load()
	state, reason := v.state, v.reason
	if b.localDecides(v, b.now()) {
		state, reason = b.beneath.To, b.beneath.Reason
	}
	if state == b.state {
		return
	}
	if why == "" {
		why = reason
	}
	b.seq++
	p := b.policy.Load()
	if p.OnChange != nil {
		b.changes.Put(told{breaker.Change{Name: p.Name, Seq: b.seq, From: b.state, To: state, Reason: why}, p.OnChange})
	}
	b.state = state
}

// tell runs the hooks, outside every lock. Whoever happens to do it may hold a probe's lease, or be in the background: a hook's
// panic waits for the next Acquire.
func (b *Breaker) tell() {
	b.changes.Deliver(func(t told) {
		defer func() {
			if v := recover(); v != nil {
				b.panics.CompareAndSwap(nil, &v)
			}
		}()
		t.hook(t.change)
	})
}

func (b *Breaker) repanic() {
	if v := b.panics.Swap(nil); v != nil {
		panic(*v)
	}
}
