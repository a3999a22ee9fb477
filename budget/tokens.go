package budget

import (
	"sync"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/jonboulle/clockwork"
)

// TokenConfig is an absolute pool.
type TokenConfig struct {
	// Capacity is the most tokens there are; required, from 1. The pool starts full.
	Capacity int
	// Refill is tokens per Per; 0 = none (a pool for the process's life); else from 1. They flow in evenly, exact to the nanosecond.
	Refill int
	// Per is the time of one Refill; 0 = 1 s; else positive.
	Per time.Duration
	// Hold is when an undecided reservation goes back to the pool by itself; 0 = 1 min; else above 1 s. It must exceed the
	// attempt timeout of every pipeline that uses the pool by more than 1 s (Build checks).
	Hold time.Duration
	// Clock; nil = real time.
	Clock clockwork.Clock
}

// Tokens is the pool; Deposit does nothing. Make one with [NewTokens]: the zero Tokens has none, ever.
//
// A reservation that goes back after Hold and is committed later all the same takes a token once more, since the retry
// is sent: the pool may run into debt, and Reserve says false until Refill has paid it.
// Cancelling it later changes nothing. Safe for concurrent use.
type Tokens struct {
	clock clock.Clock

	mu   sync.Mutex // guards what follows
	cfg  TokenConfig
	pool pool
}

var _ Retry = (*Tokens)(nil)

// NewTokens makes a full pool; its error names each invalid field and its value.
func NewTokens(cfg TokenConfig) (*Tokens, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	t := &Tokens{clock: clock.Of(cfg.Clock), cfg: cfg}
	t.pool.last = t.clock.Now()
	t.pool.configure(cfg)
	t.pool.fill()
	return t, nil
}

// MustNewTokens is NewTokens that panics instead.
func MustNewTokens(cfg TokenConfig) *Tokens {
	t, err := NewTokens(cfg)
	if err != nil {
		panic(err)
	}
	return t
}

// Update changes the parameters and keeps the balance (at most Capacity). Clock may not change. A new Hold also counts
// for what is held already. With an error nothing changes.
func (t *Tokens) Update(cfg TokenConfig) error {
	cfg, err := cfg.filled()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !clock.Same(cfg.Clock, t.cfg.Clock) {
		return anotherClock(t.cfg.Clock, cfg.Clock)
	}
	t.pool.advance(t.clock.Now()) // what has flowed in until now did so at the old rate
	t.pool.configure(cfg)
	t.cfg = cfg
	return nil
}

// Config is what is in force, defaults filled in.
func (t *Tokens) Config() TokenConfig {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cfg
}

// Deposit does nothing: first attempts earn nothing here.
func (t *Tokens) Deposit() {}

// Reserve takes one token, or says false.
func (t *Tokens) Reserve() (Reservation, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pool.advance(t.clock.Now())
	token := &poolToken{tokens: t}
	if !t.pool.take(token) {
		return nil, false
	}
	return token, true
}

// Balance is the number of whole tokens that Reserve could hand out now.
func (t *Tokens) Balance() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pool.advance(t.clock.Now())
	return int(max(0, t.pool.tokens))
}

// Commit spends the token.
func (t *poolToken) Commit() { t.decide(true) }

// Cancel gives the token back.
func (t *poolToken) Cancel() { t.decide(false) }

func (t *poolToken) decide(sent bool) {
	t.tokens.mu.Lock()
	defer t.tokens.mu.Unlock()
	t.tokens.pool.advance(t.tokens.clock.Now()) // Hold may have passed without anybody having looked
	t.tokens.pool.decide(t, sent)
}

// filled is c with its defaults, or every problem of it.
func (c TokenConfig) filled() (TokenConfig, error) {
	var bad check.List
	if c.Capacity < 1 {
		bad.Bad("budget", "Capacity", c.Capacity, "at least 1")
	}
	if c.Refill < 0 {
		bad.Bad("budget", "Refill", c.Refill, "0 (none) or more")
	}
	switch {
	case c.Per == 0:
		c.Per = defaultPer
	case c.Per < 0:
		bad.Bad("budget", "Per", c.Per, "0 (the default) or a positive duration")
	}
	switch {
	case c.Hold == 0:
		c.Hold = defaultHold
	case c.Hold <= leastHold:
		bad.Bad("budget", "Hold", c.Hold, "0 (the default) or more than 1s")
	}
	checkClock(&bad, c.Clock)
	return c, bad.Err()
}
