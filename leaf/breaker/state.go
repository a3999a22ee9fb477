package breaker

import (
	"fmt"
	"time"
)

// State of a breaker.
type State uint8

const (
	Closed   State = iota // everybody is admitted, results count
	Open                  // nobody is admitted
	HalfOpen              // probes are admitted
)

// String is closed, open or half-open.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText is String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Change is a committed transition: From and To differ.
type Change struct {
	Name   string // Config.Name
	Seq    uint64 // from 1, in commit order, without gaps
	From   State
	To     State
	Reason string // why, with numbers: "failure rate 12/20", "5 failures in a row", "probe failed", "forced"; never a callback's result
}

// Snapshot is one consistent read, safe to marshal to JSON.
type Snapshot struct {
	Name           string        `json:"name"`
	State          State         `json:"state"`           // what the next Acquire would decide on
	Forced         bool          `json:"forced"`          // by ForceOpen or ForceClosed
	Calls          int           `json:"calls"`           // results in the window while closed; 0 after a change of state
	Failures       int           `json:"failures"`        // of these
	Slow           int           `json:"slow"`            // of these
	FailureRate    float64       `json:"failure_rate"`    // Failures/Calls, 0 when Calls is 0
	Probes         int           `json:"probes"`          // leases in use; with NoLease none is
	ProbeSuccesses int           `json:"probe_successes"` // in this half-open period
	Wait           time.Duration `json:"wait"`            // open: until the first probe may go, in nanoseconds; 0 = unknown
	Reason         string        `json:"reason"`          // of the last change of state or force; "" = none yet
	Since          time.Duration `json:"since"`           // how long ago that was, in nanoseconds; 0 = none yet, or unknown
	Trip           string        `json:"trip"`            // why it opened last without being forced; kept after it has closed; "" = never, or unknown
	TripAgo        time.Duration `json:"trip_ago"`        // how long ago that was, in nanoseconds; 0 = never, or unknown
}
