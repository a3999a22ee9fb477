package redislimit

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"
)

// Limiter is a ratelimit.Limit whose bucket lies in Redis. It is safe for concurrent use. Make one with [New] or [NewQuota]
// and end it with Close.
type Limiter struct {
	opts  Options
	store *redisscript.Store
	clock clock.Clock
	base  policy // the first one; its interval is what a TAT without one was counted with

	mu       sync.Mutex
	policy   policy
	line     []*request // who waits for an answer, or for tokens, first in, first out; those who left until the next flight
	queued   int        // of them, those who wait for tokens
	answered []*request // who was decided and has not been told
	settlers []*settler // who waits for a refund to be recorded
	loose    int64      // tokens to give back that nobody waits for
	stash    int64      // tokens taken ahead
	flying   bool       // a call is under way, or about to be
	poke     bool       // there is something to ask
	alarm    func() bool
	due      int64 // the clock's reading at which the first in the line may have its tokens
	known    known
	seq      int64 // of a quota's calls
	acked    int64 // the last whose reply came
	fallback *fallback
	healthy  bool // the store has decided something since the fallback was made
	outages  uint64
	step     suspect
	healed   int64 // the clock's reading at which a bucket was last cut for a step of the clock; 0 = never
	closed   bool
	id       string // of a quota's slot
}

// known is the last that was heard of the bucket.
type known struct {
	level
	at int64 // the clock's reading
	ok bool
}

var (
	_ ratelimit.Limit = (*Limiter)(nil)
	_ leaf.Settler    = (*Limiter)(nil)
)

// New makes a limiter of the bucket that is shared under cfg.Name; a bucket that nobody has used starts full. Its error names
// each invalid field and its value; a store that cannot be reached is no error here, because New asks nothing and writes
// nothing. cfg.Clock measures MaxWait and the local limiter of an outage; the rate itself follows the server's clock.
func New(client redis.UniversalClient, cfg ratelimit.Config, opts Options) (*Limiter, error) {
	bad := check.List{Name: cfg.Name}
	opts, err := opts.filled(client, cfg.Name, false)
	bad.Add(err)
	p, err := limitPolicy(cfg)
	bad.Add(err)
	return open(client, p, opts, &bad)
}

// NewQuota makes a limiter of the n tokens, from 1 to 2^53-1, that are shared under name and never refilled: once they are
// gone every refusal has Wait < 0. Its key never expires; who deletes it hands the quota out again.
func NewQuota(client redis.UniversalClient, name string, n int, opts Options) (*Limiter, error) {
	bad := check.List{Name: name}
	opts, err := opts.filled(client, name, true)
	bad.Add(err)
	p := policy{}
	if local, err := ratelimit.NewQuota(name, n); err != nil {
		bad.Add(err)
	} else {
		p, err = quotaPolicy(local.Config())
		bad.Add(err)
	}
	return open(client, p, opts, &bad)
}

// limitPolicy accepts what the local limiter accepts.
func limitPolicy(cfg ratelimit.Config) (policy, error) {
	local, err := ratelimit.New(cfg)
	if err != nil {
		return policy{}, err
	}
	return newPolicy(local.Config())
}

func open(client redis.UniversalClient, p policy, opts Options, bad *check.List) (*Limiter, error) {
	if bad.Err() == nil {
		bad.Add(opts.fits(p.cfg))
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	kind := "limit"
	if p.quota {
		kind = "quota"
	}
	l := &Limiter{opts: opts, clock: clock.Of(p.cfg.Clock), base: p, policy: p, healthy: true, id: rand.Text()}
	var err error
	l.store, err = redisscript.Open(client, "redislimit", kind, p.cfg.Name, opts.store())
	return l, err
}

// Update changes the parameters that this process uses; each process of a fleet is told on its own. The bucket keeps its
// balance, at most the new Burst, whichever process is the first to ask with the new ones; the fleet has no more after the
// change than before, however many make it. Only a bucket that nobody has used since it was full, whose key is gone, is full at
// the new Burst. Who waits keeps its place and the MaxWait it came with; where the new rate no longer serves it in time it is
// refused, and where it wants more than the new Burst it gets that usage error. Name, which is the
// bucket, and Clock may not change. An invalid cfg is an error and changes nothing.
// A quota takes a cfg with Rate 0 and Burst n: what was spent stays spent. A limiter never becomes a quota, nor the reverse.
func (l *Limiter) Update(cfg ratelimit.Config) error {
	p, err := l.updated(cfg)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.policy = p
	if l.fallback != nil {
		l.fallback.update(l.opts, p)
	}
	l.poke = l.poke || len(l.line) > 0
	start := l.starts()
	l.mu.Unlock()
	l.launch(start)
	return nil
}

func (l *Limiter) updated(cfg ratelimit.Config) (p policy, err error) {
	bad := check.List{Name: l.base.cfg.Name}
	if cfg.Name != l.base.cfg.Name {
		bad.Bad("redislimit", "Name", fmt.Sprintf("%q", cfg.Name), fmt.Sprintf("%q: the name is the shared bucket and may not change", l.base.cfg.Name))
	}
	if l.base.quota {
		// A quota of 1 is only what validates the cfg as the local one does.
		local := ratelimit.MustNewQuota(cfg.Name, 1)
		if err = local.Update(cfg); err == nil {
			p, err = quotaPolicy(local.Config())
		}
	} else {
		if !clock.Same(cfg.Clock, l.base.cfg.Clock) {
			is, want := clock.Another(l.base.cfg.Clock, cfg.Clock)
			bad.Bad("redislimit", "Clock", is, want)
		}
		p, err = limitPolicy(cfg)
	}
	bad.Add(err)
	if bad.Err() == nil {
		bad.Add(l.opts.fits(p.cfg))
	}
	return p, bad.Err()
}

// Config is what is in force in this process, defaults filled in; a quota's has Rate 0, Per 0 and Burst n.
func (l *Limiter) Config() ratelimit.Config { return l.now().cfg }

func (l *Limiter) now() policy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policy
}

// Clock is Config's (nil = real time); used is false for a quota.
func (l *Limiter) Clock() (clock clockwork.Clock, used bool) {
	return l.base.cfg.Clock, !l.base.quota
}

// Inspect is local: kind "ratelimit", gauges "tokens" (limit Burst: what the bucket holds by the last that was heard of it, if
// nobody took any since; Burst before the first), "queued" (in this process) and "store_down" (1 in an outage).
func (l *Limiter) Inspect() leaf.Snapshot {
	down := l.store.Down()
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens := float64(l.policy.cfg.Burst)
	if l.known.ok {
		tokens = l.policy.tokensAfter(l.known.level, clockDistance(l.known.at, l.clock.Now()))
	}
	out := 0.0
	if down {
		out = 1
	}
	return leaf.Snapshot{Kind: "ratelimit", Name: l.policy.cfg.Name, Gauges: []leaf.Gauge{
		{Name: "tokens", Value: tokens, Limit: float64(l.policy.cfg.Burst)},
		{Name: "queued", Value: float64(l.queued)},
		{Name: "store_down", Value: out, Limit: 1},
	}}
}

// Tokens asks the store what the fleet's bucket holds now, 0 to Burst, fractions included. It changes nothing. Its error is a
// *leaf.StoreError, or ctx's own.
func (l *Limiter) Tokens(ctx context.Context) (float64, error) {
	l.store.Repanic()
	p := l.now()
	call := redisscript.Call{Op: leaf.OpAdmit, Script: look, Args: append(l.bucketArgs(p), 0, -1, 0)}
	if p.quota {
		call.Script, call.Args = left, nil
	}
	reply, err := l.store.Do(ctx, call)
	if err != nil {
		return 0, err
	}
	n, err := reply.Ints(2)
	if err != nil {
		return 0, &leaf.StoreError{Op: leaf.OpAdmit, Name: p.cfg.Name, Err: err}
	}
	return p.tokens(level{now: n[0], lag: n[1]}), nil
}

// Close gives back what was taken ahead and what is still owed to the bucket, ends every goroutine, and leaves the client open.
// Calls that wait, and calls that come later, get what the outage policy says. It waits for calls under way as long as ctx
// allows; it may be called again. A hook must not call it: it waits for hooks that run.
func (l *Limiter) Close(ctx context.Context) error {
	if flush := l.flush(); flush != nil {
		select {
		case <-flush.done: // whatever came of it: the store is told once
		case <-ctx.Done():
		}
	}
	err := l.store.Close(ctx)
	l.mu.Lock()
	l.poke = l.poke || len(l.line) > 0 || len(l.settlers) > 0 // they hear that the store is closed
	start := l.starts()
	l.mu.Unlock()
	l.launch(start)
	return err
}

// unsettled: nobody knows whether a quota's last call was executed, and what it took belongs to nobody. The next one, whatever
// it asks for, undoes it. Under mu.
func (l *Limiter) unsettled() bool { return l.policy.quota && l.acked < l.seq }

// flush begins the last call; nil where nothing is owed.
func (l *Limiter) flush() *settler {
	l.mu.Lock()
	l.closed = true
	l.disarm()
	l.loose += l.stash
	l.stash = 0
	if l.loose == 0 && !l.flying && !l.unsettled() {
		l.mu.Unlock()
		return nil
	}
	s := &settler{done: make(chan struct{})}
	l.settlers = append(l.settlers, s)
	l.poke = true
	start := l.starts()
	l.mu.Unlock()
	l.launch(start)
	return s
}
