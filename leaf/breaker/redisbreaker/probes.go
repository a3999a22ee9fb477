package redisbreaker

import (
	"sync"
	"time"

	"github.com/fairlead/fairlead/leaf"
)

// stale is how long a refusal for want of a probe stands for those that come after it: a half-open circuit under load must not
// turn every call into a store call.
const stale = 50 * time.Millisecond

// probes is the admissions whose permits need more than a number, and what is known of the fleet's slots.
type probes struct {
	mu      sync.Mutex
	last    uint64
	entries map[uint64]*entry

	serial   uint64 // the half-open view of the last refusal
	free     int64  // when the first lease ends
	until    int64  // as long as the refusal stands
	released uint64 // how many slots this process has given back
}

// entry is a probe of the fleet's, or an admission by the local breaker.
type entry struct {
	probe   string // token; "" = local
	gen     int64
	unbound bool // a probe without a lease

	permit leaf.Permit // local
	serial uint64      // local
}

func (p *probes) init() { p.entries = map[uint64]*entry{} }

func (p *probes) add(e *entry) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.entries[p.last] = e
	return p.last
}

func (p *probes) take(id uint64) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[id]
	delete(p.entries, id)
	return e
}

// number is a new probe's, and how many slots were given back so far.
func (p *probes) number() (n, released uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	return p.last, p.released
}

// refuse remembers a refusal, unless a slot was given back since it was asked for.
func (p *probes) refuse(serial, released uint64, now int64, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if released == p.released {
		p.serial, p.free, p.until = serial, now+int64(wait), now+int64(min(wait, stale))
	}
}

// refused is the wait of a refusal that still stands, or 0.
func (p *probes) refused(serial uint64, now int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if serial != p.serial || now >= p.until || p.until-now > int64(stale) { // the last one: the clock went back
		return 0
	}
	return time.Duration(p.free - now)
}

// release forgets the refusal: a slot is free.
func (p *probes) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released++
	p.until = 0
}
