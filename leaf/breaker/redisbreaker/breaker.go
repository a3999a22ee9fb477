package redisbreaker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/breaking"
	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/mailbox"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"
)

// Breaker is a leaf.Guard that a fleet shares, safe for concurrent use. Make it with [New] and end it with Close.
type Breaker struct {
	store *redisscript.Store
	opts  Options
	id    string // of this instance, as a reporter
	local *breaker.Breaker

	view   atomic.Pointer[view] // a closed circuit admits, and an open one refuses, with one load of it
	policy atomic.Pointer[policy]
	out    atomic.Bool // the last store call failed: an outage

	probes  probes
	panics  atomic.Pointer[any] // the first of a hook that nobody has heard of yet
	changes mailbox.Box[told]

	mu       sync.Mutex // orders the views, the outbox and the changes
	outbox   outbox
	watching bool
	closed   bool
	state    breaker.State // as it was told
	seq      uint64        // of changes
	beneath  breaker.Change
}

type told struct {
	change breaker.Change
	hook   func(breaker.Change)
}

var (
	_ breaker.Circuit = (*Breaker)(nil)
	_ leaf.Settler    = (*Breaker)(nil)
	_ leaf.Trier      = (*Breaker)(nil)
	_ leaf.Leaser     = (*Breaker)(nil)
	_ leaf.Timed      = (*Breaker)(nil)
)

// New makes the breaker called cfg.Name, and reads what the fleet knows of it: once, within Timeout, and nothing is written. A
// store that cannot be asked is no error. Its errors name each invalid field and its value.
//
// cfg means what it means to the local breaker, with these additions. Clock is that of the local breaker underneath, the
// fleet's time is the server's, counted in µs, an open time rounded up. OnChange is told what this process learns, for the first
// time perhaps while New runs; its panic arrives at the next Acquire. OpenError.Cause is set in the process whose results opened
// the circuit. Rand may be asked more often than the circuit opens.
func New(client redis.UniversalClient, cfg breaker.Config, opts Options) (*Breaker, error) {
	b := &Breaker{id: rand.Text()}
	var errs [3]error
	b.local, errs[0] = breaker.New(local(cfg, b.localChanged))
	b.opts, errs[1] = opts.check(cfg.Name)
	b.store, errs[2] = opts.open(client, cfg.Name, b.storeTold)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	b.policy.Store(b.complete(cfg))
	b.view.Store(&view{serial: 1})
	b.probes.init()
	b.outbox.init()
	_, _ = b.ask(context.Background(), redisscript.Call{Op: leaf.OpAdmit, Script: read, Args: b.args()}, nil) // the poll asks again
	b.tell()
	return b, nil
}

// complete is the policy of a cfg that the local breaker has taken.
func (b *Breaker) complete(cfg breaker.Config) *policy {
	filled := b.local.Config()
	filled.IsFailure, filled.Ignore, filled.OnChange = cfg.IsFailure, cfg.Ignore, cfg.OnChange
	return newPolicy(filled, b.opts.MinReporters)
}

// Update changes the parameters of this process and keeps the fleet's state. Thresholds are each process's own: a batch is
// judged by those of the process that sends it. A Window of another kind or size is counted beside the one so far, and starts
// empty where nobody else uses it. Name and Clock may not change. An invalid cfg is an error and changes nothing.
func (b *Breaker) Update(cfg breaker.Config) error {
	name := b.Config().Name
	l := check.List{Name: name}
	if cfg.Name != name {
		l.Bad("redisbreaker", "Name", fmt.Sprintf("%q", cfg.Name), fmt.Sprintf("the one given to New, %q", name))
	}
	if err := l.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.local.Update(local(cfg, b.localChanged)); err != nil {
		return err
	}
	b.policy.Store(b.complete(cfg))
	return nil
}

// Config is what is in force, constant defaults filled in (ProbeLease and BlameAfter stay 0 where they follow something).
func (b *Breaker) Config() breaker.Config { return b.policy.Load().Config }

// Clock is Config's, on which the local breaker underneath runs (nil = real time).
func (b *Breaker) Clock() (clock clockwork.Clock, used bool) { return b.local.Clock() }

// Lease is ProbeLease where it was set, else 0.
func (b *Breaker) Lease() time.Duration { return b.local.Lease() }

// WantsTook is true where SlowCall is on.
func (b *Breaker) WantsTook() bool { return b.policy.Load().SlowCall > 0 }

// now is the time by which this process counts what the store told it, in ns.
func (b *Breaker) now() int64 {
	if b.opts.Now != nil {
		return b.opts.Now().UnixMicro() * 1000 // as the scripts see it
	}
	return clock.Clock{}.Now()
}

// A permit's token: the serial of the closed view that admitted it (0 = none of the fleet's), or the number of an entry in probes.
const (
	closedToken = 0
	entryToken  = 1
)

// Acquire admits, or refuses with an [*breaker.OpenError]. Closed and open it asks nobody; when the open time is over it asks the
// store for a probe's lease, and waits for that no longer than Timeout and ctx allow. Where the store cannot be asked, the policy
// decides. A ctx that is done takes no probe: its own error comes back.
func (b *Breaker) Acquire(ctx context.Context) (leaf.Permit, error) {
	if b.panics.Load() != nil {
		b.repanic()
	}
	b.store.Repanic()
	if ctx.Err() != nil {
		return leaf.Permit{}, ended.Err(ctx)
	}
	v := b.view.Load()
	if v.state == breaker.Closed {
		if b.localDecides(v, 0) {
			return b.acquireLocal(ctx, v.serial)
		}
		return leaf.NewPermit(b, v.serial<<1|closedToken), nil
	}
	if err := b.refuses(v); err != nil {
		return leaf.Permit{}, err
	}
	return b.probe(ctx, v)
}

// TryAcquire is Acquire.
func (b *Breaker) TryAcquire(ctx context.Context) (leaf.Permit, error) { return b.Acquire(ctx) }

// refuses is the refusal that needs no store: the circuit is known to be open, or was out of probes a moment ago.
func (b *Breaker) refuses(v *view) error {
	now := b.now()
	if wait, yes := v.refuses(now); yes {
		return b.refusal(breaker.OpenError{State: breaker.Open, Wait: wait, Cause: v.cause})
	}
	if b.localDecides(v, now) {
		return nil
	}
	if wait := b.probes.refused(v.serial, now); wait > 0 {
		return b.refusal(breaker.OpenError{State: breaker.HalfOpen, Wait: wait, Cause: v.cause})
	}
	return nil
}

func (b *Breaker) refusal(e breaker.OpenError) error {
	e.Name = b.policy.Load().Name
	return &e
}

// Settle judges and records the outcome: a probe's at once, within Timeout, and everybody else's soon, in the background. Its error
// is that of a probe's record; the lease then ends by itself. A result of an earlier generation changes nothing.
func (b *Breaker) Settle(ctx context.Context, token uint64, o leaf.Outcome) (err error) {
	p := b.policy.Load()
	if p.IsFailure == nil && p.Ignore == nil {
		return b.settle(ctx, token, p.judge.Of(o), o.Err)
	}
	is := breaking.Failed // where the program's own Ignore or IsFailure panics, or ends its goroutine
	defer func() {
		_ = recover()
		err = b.settle(ctx, token, is, o.Err)
	}()
	is = p.judge.Of(o)
	return nil
}

func (b *Breaker) settle(ctx context.Context, token uint64, is breaking.Result, err error) error {
	if is&breaking.Failed == 0 {
		err = nil
	}
	if token&1 == closedToken {
		b.beneathToo(is, err)
		b.report(token>>1, is, err)
		return nil
	}
	e := b.probes.take(token >> 1)
	switch {
	case e == nil:
		return nil
	case e.probe != "":
		b.beneathToo(is, err)
		return b.settleProbe(ctx, e, is, err)
	}
	_ = e.permit.Settle(ctx, judged(is, err)) // the local breaker's error is always nil
	b.report(e.serial, is, err)
	return nil
}
