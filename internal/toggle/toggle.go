// Package toggle is one switch that many pipelines go by, so that all of them are on or off at the same instant, however many
// they are. It stands apart because package pipeline reads it and package registry turns it.
package toggle

import "sync/atomic"

// Switch is on or off, for everybody who holds a copy. The zero Switch is none: nothing can turn it, and nobody goes by it. Only
// this module can make one: it is a struct, so that not even nil passes for it, and a method that takes one is for this module's
// packages alone. It is safe for concurrent use.
type Switch struct{ off *atomic.Bool }

// New is a switch of its own.
func New(on bool) Switch {
	s := Switch{new(atomic.Bool)}
	s.Set(on)
	return s
}

// Wired says that there is one.
func (s Switch) Wired() bool { return s.off != nil }

// On is one atomic load. The zero Switch has nothing to load.
func (s Switch) On() bool { return !s.off.Load() }

// Set turns it for everybody at once. The zero Switch has nothing to turn.
func (s Switch) Set(on bool) { s.off.Store(!on) }
