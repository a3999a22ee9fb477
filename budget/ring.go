package budget

import (
	"sync/atomic"
	"time"
)

// slots is how many parts of the TTL are forgotten one by one, as in Finagle.
const slots = 10

// ring counts what happened in the last TTL: the current slot of time and the nine before it, so that an event is
// remembered for more than 9/10 of the TTL and at most for the whole of it.
//
// A word holds the number of its slot of time (low 32 bits of it) above a count of 32 bits: one add on the hot path, and
// a word whose number is not among the last ten is forgotten without anybody having cleared it. So is one that lies
// ahead, after the clock has jumped back. Numbers repeat after 13 years of the shortest slots; counts up to 4·10⁹ per slot.
type ring struct {
	origin int64        // when the first slot begins
	width  int64        // of a slot, in ns
	recent atomic.Int64 // a slot that was asked for: mostly the next answer too, and a division is dear
	words  [slots]atomic.Uint64
}

func newRing(origin int64, ttl time.Duration) *ring {
	return &ring{origin: origin, width: (int64(ttl) + slots - 1) / slots}
}

// slot is the number of the slot that now is in. Rounds down, also before origin.
func (r *ring) slot(now int64) int64 {
	d := now - r.origin
	n := r.recent.Load()
	if since := d - n*r.width; 0 <= since && since < r.width {
		return n
	}
	n = d / r.width
	if d%r.width < 0 {
		n--
	}
	r.recent.Store(n)
	return n
}

func (r *ring) word(slot int64) *atomic.Uint64 {
	i := slot % slots
	if i < 0 {
		i += slots
	}
	return &r.words[i]
}

func pack(slot int64, n uint32) uint64 { return uint64(slot)<<32 | uint64(n) }

// add counts one event in slot. Lock-free; a caller that was held up for a TTL since it read the clock counts in the slot
// that has taken the word since, instead of wiping it. One that was held up for two of them wipes it: further ahead is
// where a clock that jumped back has left its words, and these must go.
func (r *ring) add(slot int64) {
	w := r.word(slot)
	for {
		old := w.Load()
		if late := uint32(old>>32) - uint32(slot); late == 0 || late == slots && uint32(old) > 0 {
			w.Add(1)
			return
		}
		if w.CompareAndSwap(old, pack(slot, 1)) {
			return
		}
	}
}

// put counts one event in slot. Not concurrent with add: what lies ahead of slot is there because the clock jumped back.
func (r *ring) put(slot int64) { r.set(slot, add32(r.count(slot, slot), 1)) }

// remove takes back one event that was counted in slot, unless slot has been forgotten. Not concurrent with add.
func (r *ring) remove(slot int64) {
	w := r.word(slot)
	if old := w.Load(); uint32(old>>32) == uint32(slot) && uint32(old) > 0 {
		w.Store(old - 1)
	}
}

// set makes slot's count n. Not concurrent with add.
func (r *ring) set(slot int64, n uint32) { r.word(slot).Store(pack(slot, n)) }

// count is what slot holds at the time of slot now: 0 where it has been forgotten, or lies ahead.
func (r *ring) count(slot, now int64) uint32 {
	if slot > now || now-slot >= slots {
		return 0
	}
	w := r.word(slot).Load()
	if uint32(w>>32) != uint32(slot) {
		return 0
	}
	return uint32(w)
}

// sum is the number of events that are remembered at the time of slot now.
func (r *ring) sum(now int64) (n int64) {
	for s := now - slots + 1; s <= now; s++ {
		n += int64(r.count(s, now))
	}
	return n
}

// resized is r with another TTL: each slot's events are taken to have happened at the slot's beginning, and none is
// remembered longer than it would have been by the longer of both.
func (r *ring) resized(now int64, ttl time.Duration) *ring {
	next := newRing(r.origin, ttl)
	cur, nextCur := r.slot(now), next.slot(now)
	for s := cur - slots + 1; s <= cur; s++ {
		to := next.slot(r.origin + s*r.width)
		if n := r.count(s, cur); n > 0 && nextCur-to < slots {
			next.set(to, add32(next.count(to, nextCur), n))
		}
	}
	return next
}

// add32 saturates: a slot of a minute takes what ten slots of a second held.
func add32(a, b uint32) uint32 {
	if s := a + b; s >= a {
		return s
	}
	return 1<<32 - 1
}
