package redisbulkhead

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"
)

// Bulkhead is a leaf.Guard, Settler, Trier, Leaser, Occupier and Inspector, safe for concurrent use. Make one with [New] and
// end it with [Bulkhead.Close].
type Bulkhead struct {
	store *redisscript.Store
	opts  Options // with its defaults
	clock clock.Clock
	id    string                          // this instance, among those that wait
	cfg   atomic.Pointer[bulkhead.Config] // changed under mu

	mu       sync.Mutex
	queue    list // of who is not decided
	ends     ends // of their waits
	waiting  int  // of them, those whom the store has refused already
	held     held
	lively   int // of held, those that may still be handed on
	overages uint64

	releases []*release // that the store has not confirmed
	renewals []*slot    // that the store is to be told of; some may have ended meanwhile
	outage   outage
	engine   engine
}

var (
	_ bulkhead.Slots = (*Bulkhead)(nil)
	_ leaf.Settler   = (*Bulkhead)(nil)
	_ leaf.Leaser    = (*Bulkhead)(nil)
)

// New makes a bulkhead that shares its slots with every other one of the same name, prefix and server. It sends nothing, writes
// nothing and starts nothing, so that the store's trouble is never its error. Its error names each invalid field of cfg and of
// opts with its value.
func New(client redis.UniversalClient, cfg bulkhead.Config, opts Options) (*Bulkhead, error) {
	_, badConfig := bulkhead.New(cfg)
	store, badStore := redisscript.Open(client, "redisbulkhead", "bulkhead", cfg.Name, opts.store())
	opts, badOptions := opts.check()
	if err := errors.Join(badConfig, badStore, badOptions); err != nil {
		return nil, err
	}
	b := &Bulkhead{store: store, opts: opts, clock: clock.Of(cfg.Clock), id: random()}
	b.cfg.Store(&cfg)
	b.ends.calls.of = byEnd
	b.engine.wake = make(chan struct{}, 1)
	return b, nil
}

// Queued is the number of calls of this process that wait.
func (b *Bulkhead) Queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}

// InUse asks the store how many permits of the fleet live; it changes nothing. Calls that were admitted during an outage count
// once the store has heard of them. Its error is a *leaf.StoreError, or ctx's own.
func (b *Bulkhead) InUse(ctx context.Context) (int, error) {
	reply, err := b.store.Do(ctx, redisscript.Call{Op: leaf.OpAdmit, Script: count, Resend: true})
	if err != nil {
		return 0, err
	}
	n, err := reply.Int()
	if err != nil {
		return 0, &leaf.StoreError{Op: leaf.OpAdmit, Name: b.Config().Name, Err: err}
	}
	return int(n), nil
}

// Lease is Options.LeaseTTL: how long the store keeps a slot without hearing of its holder. While the process lives and reaches
// the store, a call that lasts longer keeps its slot.
func (b *Bulkhead) Lease() time.Duration { return b.opts.LeaseTTL }

// Occupies is true: a detached call holds its slot until the callback really ends.
func (b *Bulkhead) Occupies() bool { return true }

// Config is what is in force.
func (b *Bulkhead) Config() bulkhead.Config { return *b.cfg.Load() }

// Clock is Config's (nil = real time); used is false without a MaxWait.
func (b *Bulkhead) Clock() (clock clockwork.Clock, used bool) {
	cfg := b.cfg.Load()
	return cfg.Clock, cfg.MaxWait > 0
}

// Update changes the parameters of this process; who is inside stays inside, and who waits keeps place and the MaxWait it came
// with. More slots are asked for at once; fewer take effect as slots come back. The limit that the fleet sees is that of the
// process that asks: change it everywhere. Name and Clock may not change. An invalid cfg is an error and changes nothing.
func (b *Bulkhead) Update(cfg bulkhead.Config) error {
	_, err := bulkhead.New(cfg)
	old := b.Config()
	if err == nil && cfg.Name != old.Name {
		err = errors.New("redisbulkhead: Name may not change: it is the instance")
	}
	if err == nil && !clock.Same(cfg.Clock, old.Clock) {
		err = errors.New("redisbulkhead: Clock may not change")
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cfg.Store(&cfg)
	b.serveShare()
	if b.queue.n > 0 {
		b.engine.now = true
		b.run()
	}
	return nil
}

// Inspect is local: kind "bulkhead", gauges "in_use" (this process's permits; limit MaxConcurrent), "queued" (limit MaxQueue)
// and "overages" (permits of this process whose lease was over before they came back, so that somebody else may have had their
// slot). State is "" where the store answered when it was asked last, and else the outage policy in force; where nobody comes, it
// is asked again with the next renewal.
func (b *Bulkhead) Inspect() leaf.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	cfg := b.cfg.Load()
	state := ""
	if b.outage.down {
		state = b.opts.OnOutage.String()
	}
	return leaf.Snapshot{Kind: "bulkhead", Name: cfg.Name, State: state, Gauges: []leaf.Gauge{
		{Name: "in_use", Value: float64(b.held.len()), Limit: float64(cfg.MaxConcurrent)},
		{Name: "queued", Value: float64(b.waiting), Limit: float64(cfg.MaxQueue)},
		{Name: "overages", Value: float64(b.overages)},
	}}
}

// full is a refusal, made anew each time.
func (b *Bulkhead) full(waited time.Duration) error {
	cfg := b.cfg.Load()
	return &bulkhead.FullError{Name: cfg.Name, Max: cfg.MaxConcurrent, Waited: max(0, waited), Wait: b.opts.LeaseTTL}
}

func (b *Bulkhead) storeError(op string, err error, notExecuted bool) error {
	return &leaf.StoreError{Op: op, Name: b.cfg.Load().Name, Err: err, NotExecuted: notExecuted}
}
