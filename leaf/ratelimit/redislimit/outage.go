package redislimit

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// What a permit's token says of where the call's own token came from; from firstFallback on it is the number of an outage.
const (
	fromStore uint64 = iota
	fromNowhere
	firstFallback
)

// fallback is the local limiter of one outage.
type fallback struct {
	id    uint64
	local *ratelimit.Limiter
	cause error // the StoreError that began it
}

// quick is a failure that took so little of the budget that who came meanwhile can still ask for itself.
const quick = 5 * time.Millisecond

// crash draws the consequences of a failed call: who flew, and who has waited for too long to try again, gets what the policy
// says.
func (l *Limiter) crash(b *batch, err error) {
	failed, _ := errors.AsType[*leaf.StoreError](err)
	if failed == nil { // ctx's own error cannot be: the flight's has no end
		failed = &leaf.StoreError{Op: b.call.Op, Name: b.policy.cfg.Name, Err: err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed.NotExecuted || b.policy.quota { // a quota's script undoes what was executed unseen
		l.stash += b.stash
		l.loose += b.refund - b.stash
	}
	for _, s := range b.settlers {
		s.err = &leaf.StoreError{Op: leaf.OpRecord, Name: failed.Name, Err: failed.Err, NotExecuted: failed.NotExecuted}
		close(s.done)
	}
	stranded := len(l.line)
	if time.Since(b.began) <= quick && !l.closed {
		stranded = b.count
	}
	admit := &leaf.StoreError{Op: leaf.OpAdmit, Name: failed.Name, Err: failed.Err, NotExecuted: failed.NotExecuted}
	for i, r := range l.line {
		switch {
		case r.fate != inLine:
		case i >= stranded:
			l.poke = true
			return
		default:
			l.strand(r, admit)
		}
	}
}

// strand applies the outage policy to r. Under mu.
func (l *Limiter) strand(r *request, err *leaf.StoreError) {
	switch l.opts.OnOutage {
	case leaf.FailOpen:
		l.resolve(r, byPolicy, nil)
	case leaf.FailClosed:
		l.resolve(r, refused, err)
	default:
		f, made := l.local(err)
		if made != nil {
			l.resolve(r, refused, err)
			return
		}
		r.fallback = f
		l.resolve(r, byFallback, nil)
	}
}

// local is the outage's limiter; each outage, which the store's next answer ends, begins with a full one.
func (l *Limiter) local(err *leaf.StoreError) (*fallback, error) {
	if !l.healthy && l.fallback != nil {
		return l.fallback, nil
	}
	local, made := l.opts.share(l.policy)
	if made != nil {
		return nil, made
	}
	l.fallback = &fallback{id: firstFallback + l.outages, local: local, cause: err}
	l.outages++
	l.healthy = false
	return l.fallback, nil
}

// update follows the limiter's own. The share of a valid configuration is valid.
func (f *fallback) update(o Options, p policy) {
	if share, err := o.share(p); err == nil {
		_ = f.local.Update(share.Config())
	}
}

// until is a context that has its deadline early; nothing but the deadline is asked, to see whether a wait fits.
type until struct {
	context.Context
	at time.Time
}

func (u until) Deadline() (time.Time, bool) { return u.at, true }

// within is ctx for the local limiter: who has waited for the shared one already has less patience.
func (l *Limiter) within(ctx context.Context, r *request) context.Context {
	if r.last == 0 {
		return ctx
	}
	at := l.clock.TimeOf(r.last)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(at) {
		return ctx
	}
	return until{ctx, at}
}

// take is the local limiter's decision; token is the permit's.
func (f *fallback) take(ctx context.Context, r *request) (token uint64, err error) {
	if r.n > int64(f.local.Config().Burst) {
		// More than this process's share ever holds, but no mistake of the caller's.
		return 0, f.cause
	}
	if r.try {
		err = f.local.AllowN(int(r.n))
	} else {
		err = f.local.Wait(ctx, int(r.n))
	}
	return f.id, err
}
