package bulkhead

// word is the whole hot state: the number of free slots (negative after the limit was lowered) above one bit that says
// that somebody waits. One word, so that a call that takes a slot in passing has seen, in the same instant, that it
// overtakes nobody.
type word int64

const (
	waiting word = 1 // somebody waits: only who holds the lock may take a slot
	slot    word = 2 // one slot
)

// free is the number of slots to be had; negative while more are out than the limit allows by now.
func (w word) free() int64 { return int64(w >> 1) }

// take is the word after a call took a slot in passing; ok is false where there is none or somebody waits for it.
func (w word) take() (next word, ok bool) { return w - slot, w&waiting == 0 && w >= slot }
