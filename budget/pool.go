package budget

import (
	"math"
	"math/bits"
	"time"
)

// pool is the state of [Tokens] without its lock and clock. Whole tokens are counted, and time is turned into them
// exactly: what does not make a whole token stays in rest.
type pool struct {
	capacity int64
	refill   int64 // tokens per per
	per      int64 // ns
	hold     int64 // ns

	tokens int64 // free ones; negative where late commits have left a debt
	rest   int64 // of the next token, in 1/per of it: 0 <= rest < per; 0 when full
	last   int64 // up to which instant time has been turned into tokens

	oldest, newest *poolToken // undecided, in the order of their instants
}

// poolToken is an undecided reservation, or one that is not in the list any more.
type poolToken struct {
	tokens     *Tokens
	at         int64 // when it was reserved
	state      tokenState
	prev, next *poolToken
}

type tokenState uint8

const (
	held    tokenState = iota // undecided, in the list
	lapsed                    // undecided, given back after hold
	decided                   // committed or cancelled
)

// advance brings the pool to now: what has flowed in, and what was held for too long.
func (p *pool) advance(now int64) {
	if now < p.last {
		// The clock has jumped back: nothing is minted, and what is held is held from now on.
		for t := p.oldest; t != nil; t = t.next {
			t.at = now
		}
		p.last = now
		return
	}
	p.flow(now - p.last)
	p.last = now
	for t := p.oldest; t != nil && now-t.at >= p.hold; t = p.oldest {
		p.unlink(t)
		t.state = lapsed
		p.put()
	}
}

// flow turns elapsed time into tokens.
func (p *pool) flow(elapsed int64) {
	hi, lo := bits.Mul64(uint64(elapsed), uint64(p.refill))
	lo, carry := bits.Add64(lo, uint64(p.rest), 0)
	hi += carry
	room := p.capacity - p.tokens // a debt makes it larger, far from overflowing
	if hi >= uint64(p.per) {      // the quotient would not fit 64 bits
		p.fill()
		return
	}
	whole, rest := bits.Div64(hi, lo, uint64(p.per))
	if whole >= uint64(room) {
		p.fill()
		return
	}
	p.tokens, p.rest = p.tokens+int64(whole), int64(rest)
}

func (p *pool) fill() { p.tokens, p.rest = p.capacity, 0 }

// put gives one token back.
func (p *pool) put() {
	if p.tokens++; p.tokens >= p.capacity {
		p.fill()
	}
}

// take hands out a token for t, or says false.
func (p *pool) take(t *poolToken) bool {
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	t.at, t.prev = p.last, p.newest
	if p.newest == nil {
		p.oldest = t
	} else {
		p.newest.next = t
	}
	p.newest = t
	return true
}

// decide settles t. A token that had gone back is taken once more when its retry is sent after all.
func (p *pool) decide(t *poolToken, sent bool) {
	switch {
	case t.state == held:
		p.unlink(t)
		if !sent {
			p.put()
		}
	case t.state == lapsed && sent && p.tokens > math.MinInt64/2:
		p.tokens--
	}
	t.state = decided
}

func (p *pool) unlink(t *poolToken) {
	if t.prev == nil {
		p.oldest = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		p.newest = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

// configure changes the parameters; the part of a token that has flowed in already keeps its size.
func (p *pool) configure(c TokenConfig) {
	if per := int64(c.Per); p.per != per {
		if p.per > 0 {
			hi, lo := bits.Mul64(uint64(p.rest), uint64(per))
			rest, _ := bits.Div64(hi, lo, uint64(p.per))
			p.rest = int64(rest)
		}
		p.per = per
	}
	p.capacity, p.refill, p.hold = int64(c.Capacity), int64(c.Refill), int64(c.Hold)
	if p.tokens >= p.capacity {
		p.fill()
	}
}

const (
	defaultPer  = time.Second
	defaultHold = time.Minute
	leastHold   = time.Second
)
