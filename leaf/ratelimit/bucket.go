package ratelimit

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/internal/clock"
)

// bucket is one configuration and the state that it counts. All but the word never changes; whoever has to change more (a
// new configuration, a new base) freezes the word and publishes a successor, so that a compare-and-swap of the word proves
// that everything it was computed with was still in force.
type bucket struct {
	policy
	cfg  Config
	base int64 // the clock's reading that is unit 0; no instant before it counts
	word atomic.Int64
}

// word is a state (see policy.take, always >= 0) above one bit that says that somebody waits.
type word int64

const (
	waiting word = 1  // somebody waits: only who holds the lock may change the word
	frozen  word = -1 // a successor is being made
)

func wordOf(tat int64) word { return word(tat << 1) }

func (w word) tat() int64 { return int64(w >> 1) }

// plain says that the word may be read and swapped without the lock.
func (w word) plain() bool { return w&waiting == 0 } // frozen has the bit too

// instant is a reading of the clock in a bucket's terms.
type instant struct {
	reading int64 // the clock's own
	ns      int64 // since the base, saturated; negative where the clock stepped back behind it
	units   int64 // never negative: a reading behind the base counts as the base
	place   place
}

type place uint8

const (
	inside place = iota
	behind       // the clock stepped back behind the base: nothing is minted
	beyond       // later than the word can count from this base
	before       // so far back that it is another time: whatever is stored means nothing
)

// read places the clock's reading. The caller loaded b before, so that no reading is older than what made b.
func (b *bucket) read(c clock.Clock) instant {
	if b.quota() {
		return instant{}
	}
	return b.at(c.Now())
}

func (b *bucket) at(reading int64) instant {
	now := instant{reading: reading}
	if reading < b.base {
		back := uint64(b.base) - uint64(reading)
		now.place, now.ns = behind, -int64(min(back, uint64(jump)))
		if back > uint64(jump) {
			now.place = before
		}
		return now
	}
	ns := uint64(reading) - uint64(b.base)
	now.ns = int64(min(ns, math.MaxInt64))
	now.units = b.units(ns)
	if ns > b.span {
		now.place = beyond
	}
	return now
}

// wait is the time from now until n tokens can be taken; never for a quota.
func (b *bucket) wait(tat int64, now instant, n int64) time.Duration {
	if b.quota() {
		return never
	}
	due := min(b.due(tat, n), math.MaxInt64)
	if now.ns < 0 {
		due += uint64(-now.ns)
	} else {
		due -= min(due, uint64(now.ns))
	}
	return time.Duration(min(max(due, 1), math.MaxInt64))
}

// lost says that the state lies so far ahead that only a jump of the clock explains it.
func (b *bucket) lost(tat int64, now instant) bool {
	return now.place == before || tat-now.units > b.horizon
}
