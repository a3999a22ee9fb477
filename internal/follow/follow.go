// Package follow lets Config tell what is in force without freezing it: a default that follows another field, or a value that
// another one clamps, goes on doing so in a Config that was read, changed elsewhere and written back.
package follow

// Field is a field of a Config that is told otherwise than it was written; the zero Field is one that is told as it was.
type Field[T comparable] struct{ written, told T }

// Tell puts what is in force into the field.
func Tell[T comparable](field *T, inForce T) (f Field[T]) {
	if *field != inForce {
		f = Field[T]{written: *field, told: inForce}
	}
	*field = inForce
	return f
}

// Written is what is meant by a field that is now so: what was written once, as long as nobody has changed what was told.
func (f Field[T]) Written(now T) T {
	if now == f.told && f.written != f.told {
		return f.written
	}
	return now
}
