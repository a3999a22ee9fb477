package budget

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/reading"
	"github.com/jonboulle/clockwork"
)

// RatioConfig is Finagle's rule (com.twitter.finagle.service.RetryBudget). Zero fields mean the default.
type RatioConfig struct {
	// Ratio is retries per first attempt; 0 = 0.2; Off = none; else in (0, 1000], finite. It is kept in billionths, rounded
	// to the nearest but never to none.
	Ratio float64
	// MinPerSecond is a floor of retries per second whatever the traffic, available as MinPerSecond × TTL at once;
	// 0 = 10; Off = none; else from 1. Not both may be Off.
	MinPerSecond int
	// TTL is how long a deposit, and what was spent of the floor, is remembered; 0 = 10 s; else 1 s to 60 s.
	// It is forgotten by tenths: what happened at any time within a tenth goes when the tenth's beginning is TTL ago.
	TTL time.Duration
	// Clock; nil = real time.
	Clock clockwork.Clock
}

// Ratio is the ratio budget: MinPerSecond × TTL tokens plus Ratio per deposit of the last TTL, less what was spent in it.
// With the defaults the floor alone is 100 tokens, there at once and for a process that has sent nothing yet. Make one with
// [NewRatio]: the zero Ratio remembers nothing, and panics.
//
// A reservation is spent from the moment it is made, and from the moment it is committed where that is later. One that
// nobody decides is forgotten after TTL, as what was spent is; when it is committed after all, it counts from then, since
// the retry is sent: the balance may go below zero, and Reserve says false until it is above.
//
// Deposit is lock-free and reads the clock once; Reserve and Balance take a lock. Safe for concurrent use.
type Ratio struct {
	clock    clock.Clock
	deposits atomic.Pointer[ring]

	mu    sync.Mutex // guards what follows; deposits is replaced under it
	cfg   RatioConfig
	spent *ring
	limit ratioLimit
}

var _ Retry = (*Ratio)(nil)

// NewRatio makes a full budget; its error names each invalid field and its value.
func NewRatio(cfg RatioConfig) (*Ratio, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	r := &Ratio{clock: clock.Of(cfg.Clock), cfg: cfg, limit: cfg.limit()}
	now := r.clock.Now()
	r.spent = newRing(now, cfg.TTL)
	r.deposits.Store(newRing(now, cfg.TTL))
	return r, nil
}

// MustNewRatio is NewRatio that panics instead.
func MustNewRatio(cfg RatioConfig) *Ratio {
	r, err := NewRatio(cfg)
	if err != nil {
		panic(err)
	}
	return r
}

// Update changes the parameters and keeps the history. Clock may not change. With an error nothing changes.
func (r *Ratio) Update(cfg RatioConfig) error {
	cfg, err := cfg.filled()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !clock.Same(cfg.Clock, r.cfg.Clock) {
		return anotherClock(r.cfg.Clock, cfg.Clock)
	}
	if cfg.TTL != r.cfg.TTL {
		now := r.clock.Now()
		r.spent = r.spent.resized(now, cfg.TTL)
		// A deposit that is under way in another goroutine may be lost here; it errs on the side of fewer retries.
		r.deposits.Store(r.deposits.Load().resized(now, cfg.TTL))
	}
	r.cfg, r.limit = cfg, cfg.limit()
	return nil
}

// Config is what is in force, defaults filled in.
func (r *Ratio) Config() RatioConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cfg
}

// Deposit earns Ratio of a retry.
func (r *Ratio) Deposit() { r.deposit(r.clock.Now()) }

// DepositAt is Deposit for a caller who has read real time just now: the retry loop of a pipeline, which shares the
// reading with others.
func (r *Ratio) DepositAt(now reading.Instant) {
	if !r.clock.Real() {
		r.Deposit()
		return
	}
	r.deposit(now.Nanoseconds())
}

func (r *Ratio) deposit(now int64) {
	d := r.deposits.Load()
	d.add(d.slot(now))
}

// Reserve takes one token, or says false.
func (r *Ratio) Reserve() (Reservation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if r.balance(now) < 1 {
		return nil, false
	}
	slot := r.spent.slot(now)
	r.spent.put(slot)
	return &ratioToken{ratio: r, ring: r.spent, slot: slot}, true
}

// Balance is the number of whole tokens that Reserve could hand out now.
func (r *Ratio) Balance() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(min(max(0, r.balance(r.clock.Now())), math.MaxInt))
}

// balance may be negative.
func (r *Ratio) balance(now int64) int64 {
	d := r.deposits.Load()
	return r.limit.tokens(d.sum(d.slot(now))) - r.spent.sum(r.spent.slot(now))
}

// ratioToken is a reservation that is counted in a slot of what was spent.
type ratioToken struct {
	ratio   *Ratio
	decided bool // under ratio.mu
	ring    *ring
	slot    int64
}

// Commit counts the token from now on.
func (t *ratioToken) Commit() { t.decide(true) }

// Cancel gives the token back.
func (t *ratioToken) Cancel() { t.decide(false) }

func (t *ratioToken) decide(sent bool) {
	r := t.ratio
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.decided {
		return
	}
	t.decided = true
	if t.ring != r.spent { // the TTL was changed meanwhile: it was counted at the beginning of its slot
		t.slot = r.spent.slot(t.ring.origin + t.slot*t.ring.width)
	}
	r.spent.remove(t.slot)
	if sent {
		r.spent.put(r.spent.slot(r.clock.Now()))
	}
}

// ratioLimit is how many tokens there are before anything is spent, in integers: 0.29 × 100 must be 29.
type ratioLimit struct {
	floor uint64 // MinPerSecond
	ttl   uint64 // ns
	per   uint64 // billionths of a token per deposit
}

func (c RatioConfig) limit() ratioLimit {
	l := ratioLimit{ttl: uint64(c.TTL)}
	if c.MinPerSecond != Off {
		l.floor = uint64(c.MinPerSecond)
	}
	if c.Ratio != Off {
		l.per = max(1, uint64(math.Round(c.Ratio*1e9)))
	}
	return l
}

// tokens is floor×ttl + per×deposits, both of them billionths of a token, rounded down; it saturates.
func (l ratioLimit) tokens(deposits int64) int64 {
	hi, lo := bits.Mul64(l.floor, l.ttl)
	hi2, lo2 := bits.Mul64(l.per, uint64(deposits))
	lo, carry := bits.Add64(lo, lo2, 0)
	hi += hi2 + carry
	if hi >= 1e9/2 { // the quotient would not fit 63 bits
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, 1e9)
	return int64(q)
}

// filled is c with its defaults, or every problem of it.
func (c RatioConfig) filled() (RatioConfig, error) {
	var bad check.List
	switch {
	case c.Ratio == 0:
		c.Ratio = 0.2
	case c.Ratio == Off:
	case !check.Finite(c.Ratio) || c.Ratio < 0 || c.Ratio > 1000:
		bad.Bad("budget", "Ratio", c.Ratio, "0 (the default), Off, or above 0 and at most 1000")
	}
	switch {
	case c.MinPerSecond == 0:
		c.MinPerSecond = 10
	case c.MinPerSecond < Off:
		bad.Bad("budget", "MinPerSecond", c.MinPerSecond, "0 (the default), Off, or at least 1")
	}
	if c.Ratio == Off && c.MinPerSecond == Off {
		bad.Bad("budget", "MinPerSecond", "Off and Ratio Off too", "one of them, else no retry could ever be sent")
	}
	switch {
	case c.TTL == 0:
		c.TTL = 10 * time.Second
	case c.TTL < time.Second || c.TTL > time.Minute:
		bad.Bad("budget", "TTL", c.TTL, "0 (the default), or 1s to 1m")
	}
	checkClock(&bad, c.Clock)
	return c, bad.Err()
}

func checkClock(bad *check.List, c clockwork.Clock) {
	if c != nil && check.Nil(c) {
		bad.Bad("budget", "Clock", check.Type(c), "nil itself (real time) or a clock")
	}
}

func anotherClock(was, next clockwork.Clock) error {
	var bad check.List
	is, want := clock.Another(was, next)
	bad.Bad("budget", "Clock", is, want)
	return bad.Err()
}
