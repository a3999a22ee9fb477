// Package reading is a reading of real time that its maker hands on, so that those who ask the clock at the same moment of a
// call share one: readings are most of what a call costs. It stands apart from package clock so that package leaf, which knows
// no clock, can pass one on.
package reading

// Instant is monotonic nanoseconds on the scale of internal/clock's real time. Only this module can make one: it is a struct,
// so that not even a constant passes for it, and a method that takes one is for this module's packages alone.
type Instant struct{ ns int64 }

// At is the instant ns.
func At(ns int64) Instant { return Instant{ns} }

// Nanoseconds is what was read.
func (i Instant) Nanoseconds() int64 { return i.ns }

// Sharing is what a guard that shares readings says of itself.
type Sharing struct {
	Self  any  // the guard: one that embeds it, and may have an Acquire or a Settle of its own, is not it
	Reads bool // its AcquireAt goes by the reading, which must be fresh; otherwise it only says whether it waited
	Quiet bool // its Settle takes no time and goes by none: it tells no hook, and there is no SettleAt
}
