package registry

import "slices"

// rollback is how to undo a commit that does not come to its end: for a fault that the trial did not find, and for a panic of
// the program's own code.
type rollback []func()

func (b *rollback) add(undo func()) { *b = append(*b, undo) }

// undo goes back, the last change first.
func (b rollback) undo() {
	for _, f := range slices.Backward(b) {
		f()
	}
}
