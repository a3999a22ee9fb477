package breaker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/mailbox"
	"github.com/fairlead/fairlead/internal/reading"
	"github.com/fairlead/fairlead/leaf"
	"github.com/jonboulle/clockwork"
)

// Breaker is a leaf.Guard, safe for concurrent use. Make one with [New]: the zero Breaker has no policy, and panics.
type Breaker struct {
	// Read by every call, written by transitions and Update alone.
	word   atomic.Uint64 // the machine's word: a closed circuit admits with one load of it
	policy atomic.Pointer[policy]
	opened atomic.Pointer[opening] // an open circuit refuses with one load of it; nil otherwise
	clock  clock.Clock

	tally tally

	mu      sync.Mutex
	machine machine
	changes mailbox.Box[told]
}

// told is a change and who hears of it: the hook that was in force when it was committed.
type told struct {
	change Change
	hook   func(Change)
}

var (
	_ leaf.Guard     = (*Breaker)(nil)
	_ leaf.Settler   = (*Breaker)(nil)
	_ leaf.Trier     = (*Breaker)(nil)
	_ leaf.Peeker    = (*Breaker)(nil)
	_ leaf.Leaser    = (*Breaker)(nil)
	_ leaf.Timed     = (*Breaker)(nil)
	_ leaf.Inspector = (*Breaker)(nil)
)

// New makes a closed breaker; its error names each invalid field and its value.
func New(cfg Config) (*Breaker, error) {
	p, err := newPolicy(cfg)
	if err != nil {
		return nil, err
	}
	b := &Breaker{clock: clock.Of(cfg.Clock), machine: newMachine(p)}
	b.policy.Store(p)
	b.word.Store(b.machine.word())
	return b, nil
}

// MustNew is New that panics instead.
func MustNew(cfg Config) *Breaker {
	b, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return b
}

// Update changes the parameters and keeps state, counts, leases and the running open time. A Window of another kind
// or size starts empty. Clock may not change. An invalid cfg is an error and changes nothing.
//
// It trips nothing by itself: the next recorded result is judged by the new thresholds.
func (b *Breaker) Update(cfg Config) error {
	p, err := newPolicy(cfg)
	l := check.List{Name: cfg.Name}
	l.Add(err)
	if was := b.Config().Clock; !clock.Same(was, cfg.Clock) && (cfg.Clock == nil || !check.Nil(cfg.Clock)) {
		is, want := clock.Another(was, cfg.Clock)
		l.Bad("breaker", "Clock", is, want)
	}
	if err := l.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.policy.Swap(p)
	b.transition(p, event{kind: update, old: &old.Window})
	return nil
}

// Config is what is in force, defaults filled in (ProbeLease and BlameAfter stay 0 where they follow something). New and Update
// take it back as it is. In a copy of which some fields are changed, the others go on following them where they did: MinCalls that
// was clamped to a count window, and the defaults of Consecutive, SlowRate and MaxOpenFor.
func (b *Breaker) Config() Config { return b.policy.Load().Config }

// Clock is Config's (nil = real time).
func (b *Breaker) Clock() (clock clockwork.Clock, used bool) { return b.Config().Clock, true }

// Acquire admits, or refuses with an [*OpenError]; it never waits. From the end of the open time on it is the transition to
// half-open. A ctx that is done takes no probe: its own error comes back, matching ctx.Err() and context.Cause(ctx).
func (b *Breaker) Acquire(ctx context.Context) (leaf.Permit, error) {
	if ctx.Err() != nil {
		return leaf.Permit{}, ended.Err(ctx)
	}
	if w := b.word.Load(); tokenState(w) == Closed {
		return leaf.NewPermit(b, w), nil
	}
	return b.probe()
}

// AcquireAt is Acquire for the pipeline, which has read real time just now and wants to know whether that is still fresh: it
// is unless the circuit is not closed, where a hook may be told.
func (b *Breaker) AcquireAt(ctx context.Context, _ reading.Instant) (p leaf.Permit, fresh bool, err error) {
	if w := b.word.Load(); tokenState(w) == Closed && ctx.Err() == nil {
		return leaf.NewPermit(b, w), true, nil
	}
	p, err = b.Acquire(ctx)
	return
}

// Sharing is for the pipeline. A result may tell OnChange.
func (b *Breaker) Sharing(reading.Instant) reading.Sharing {
	return reading.Sharing{Self: b}
}

// TryAcquire is Acquire.
func (b *Breaker) TryAcquire(ctx context.Context) (leaf.Permit, error) { return b.Acquire(ctx) }

// probe is Acquire where the circuit is not closed.
func (b *Breaker) probe() (leaf.Permit, error) {
	if err := b.refusesOpen(); err != nil {
		return leaf.Permit{}, err
	}
	a := b.apply(event{kind: admit})
	if a.refused != nil {
		return leaf.Permit{}, b.refusal(a.refused)
	}
	if a.changed {
		b.tellAdmitted(a.token)
	}
	return leaf.NewPermit(b, a.token), nil
}

// refusesOpen is the refusal of an open circuit, found without the lock, or nil where the lock has to decide.
func (b *Breaker) refusesOpen() error {
	o := b.opened.Load()
	if o == nil {
		return nil
	}
	var wait time.Duration
	if !o.forced {
		if wait = o.left(b.clock.Now()); wait == 0 {
			return nil
		}
	}
	return b.refusal(&OpenError{State: Open, Cause: o.cause, Wait: wait})
}

func (b *Breaker) refusal(e *OpenError) error {
	e.Name = b.policy.Load().Name
	return e
}

// tellAdmitted gives the permit's slot back where a hook panics, for then nobody ever gets the permit.
func (b *Breaker) tellAdmitted(token uint64) {
	told := false
	defer func() {
		if !told {
			b.apply(event{kind: settle, token: token, is: neutral})
		}
	}()
	b.tell()
	told = true
}

// SettleAt is Settle for the pipeline, which has read real time just now. Only a success that passes without the lock goes
// by that: under the lock, readings must be in the order of the lock. It alone is quiet: anything else may tell a hook.
func (b *Breaker) SettleAt(ctx context.Context, token uint64, o leaf.Outcome, now reading.Instant) (quiet bool, err error) {
	if b.clock.Real() && b.policy.Load().easy(o) && tokenState(token) == Closed {
		if w, open := b.opening(token); open && (w&modeMask == absorbMode || b.tally.count(w, now.Nanoseconds())) {
			return true, nil
		}
	}
	return false, b.Settle(ctx, token, o)
}

// Settle judges and records the outcome. Called by the permit alone; token names the generation. It returns nil.
// A result of an earlier generation changes nothing, and IsFailure is not asked about it.
func (b *Breaker) Settle(_ context.Context, token uint64, o leaf.Outcome) error {
	p := b.policy.Load()
	switch {
	case p.easy(o) && tokenState(token) == Closed && b.passes(token): // most calls
	case !ofGeneration(b.word.Load(), token):
	case p.IsFailure != nil || p.Ignore != nil:
		b.ask(p, token, o)
	default:
		b.record(token, p.judge.Of(o), o.Err)
	}
	return nil
}

// ask judges with the program's own Ignore and IsFailure: a failure where one panics, or ends its goroutine.
func (b *Breaker) ask(p *policy, token uint64, o leaf.Outcome) {
	is := failed
	defer func() {
		_ = recover()
		b.record(token, is, o.Err)
	}()
	is = p.judge.Of(o)
}

func (b *Breaker) record(token uint64, is result, err error) {
	if tokenState(token) == Closed && (is == neutral || is == succeeded && b.passes(token)) {
		return
	}
	if is&failed == 0 {
		err = nil
	}
	if b.apply(event{kind: settle, token: token, is: is, err: err}).changed {
		b.tell()
	}
}

// passes records a success without the lock, where nothing can come of it. The tally is looked at before the
// generation: an opening of a later generation would otherwise take a result of an earlier one.
func (b *Breaker) passes(token uint64) bool {
	w, open := b.opening(token)
	return open && (w&modeMask == absorbMode || b.tally.count(w, b.clock.Now()))
}

// opening is what lets successes of token's generation pass without the lock, if anything does now.
func (b *Breaker) opening(token uint64) (w uint64, open bool) {
	w = b.tally.word.Load()
	return w, w&modeMask != shutMode && b.word.Load() == token
}

// apply is one event under the lock. The changes are told by its caller, after the lock.
func (b *Breaker) apply(e event) answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.transition(b.policy.Load(), e)
}

// transition brings the machine up to date, applies the event, and publishes what the calls without the lock go by.
func (b *Breaker) transition(p *policy, e event) answer {
	b.machine.credit(b.tally.shut())
	a := b.machine.apply(p, e, &moment{clock: b.clock})
	b.publish()
	b.machine.letPass(p, &b.tally)
	if a.changed && p.OnChange != nil {
		b.changes.Put(told{b.machine.change, p.OnChange})
	}
	return a
}

func (b *Breaker) publish() {
	w := b.machine.word()
	if w == b.word.Load() {
		return
	}
	var o *opening
	if b.machine.state == Open {
		copied := b.machine.opening
		o = &copied
	}
	b.opened.Store(o)
	b.word.Store(w)
}

// tell tells the hooks, outside the lock.
func (b *Breaker) tell() {
	b.changes.Deliver(func(t told) { t.hook(t.change) })
}

// Lease is ProbeLease where it was set, else 0 (a default lease limits the slot only, so Build has nothing to check).
func (b *Breaker) Lease() time.Duration { return max(0, b.policy.Load().ProbeLease) }

// WantsTook is true where SlowCall is on. (BlameAfter needs Took only for calls with a deadline, where it is always filled in.)
func (b *Breaker) WantsTook() bool { return b.policy.Load().SlowCall > 0 }
