package breaker

import "sync/atomic"

// tally takes the successes that need no judging, without the lock. It is open while that is known to be so, for one
// bucket of a time window or as long as a count window is clean, and shut before anything else happens: what came
// before is then credited, what comes later is judged. A success is thus ordered before or after every other event.
//
// word is count (20 bits), mode (2), tag (42). Every opening has a tag of its own, so that a goroutine that has slept
// between its look and its add cannot add to another opening.
type tally struct {
	word  atomic.Uint64
	start atomic.Int64 // of the bucket
	width atomic.Int64
	tag   uint64 // of the last opening; under the lock
}

const (
	countBits        = 20
	countMask uint64 = 1<<countBits - 1
	modeMask  uint64 = 3 << countBits
	tagShift         = countBits + 2

	shutMode   uint64 = 0 << countBits
	countMode  uint64 = 1 << countBits // successes up to the end of the bucket are counted
	absorbMode uint64 = 2 << countBits // successes change nothing
)

// count adds one success at now to the opening that w was loaded from. It fails where the opening is over.
func (t *tally) count(w uint64, now int64) bool {
	for opening := w &^ countMask; w&^countMask == opening; w = t.word.Load() {
		if uint64(now)-uint64(t.start.Load()) >= uint64(t.width.Load()) || w&countMask == countMask {
			return false // before the bucket, after it, or too many: the lock sorts it out
		}
		if t.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
	return false
}

// shut ends the opening and returns what it has counted.
func (t *tally) shut() int {
	if t.word.Load()&modeMask == shutMode {
		return 0
	}
	return int(t.word.Swap(shutMode) & countMask)
}

// counted is what the opening has counted so far.
func (t *tally) counted() int { return int(t.word.Load() & countMask) }

func (t *tally) open(mode uint64) {
	t.tag++
	t.word.Store(t.tag<<tagShift | mode)
}

// openFor counts successes from start on, for width. start and width are stored first: whoever has loaded the new word
// sees them, and whoever has loaded an older one fails at its tag.
func (t *tally) openFor(start, width int64) {
	if t.start.Load() != start { // a store costs as much as all the loads of a call
		t.start.Store(start)
	}
	if t.width.Load() != width {
		t.width.Store(width)
	}
	t.open(countMode)
}
