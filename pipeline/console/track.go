package console

import (
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
)

// track follows one circuit from second to second: what a Snapshot does not say is why it first opened once probes have failed,
// when its open time was over, and, where it is no circuit of this module, since when.
type track struct {
	id      int
	name    string
	state   breaker.State
	forced  bool
	since   time.Time
	atLeast bool
	trip    string
	tripAt  time.Time
	openFor time.Duration
	moved   time.Time // the last change that the circuit itself dates; zero = none
	here    bool      // seen this second
}

// follow takes the next look. Changes that no hook of the circuit told are written to the journal.
func (t *track) follow(s *breaker.Snapshot, now time.Time, first bool, j *Journal) {
	changed := s.State != t.state || s.Forced != t.forced
	was := t.state
	if changed || first {
		t.since, t.atLeast, t.openFor = now, first, 0
	}
	t.state, t.forced = s.State, s.Forced
	t.date(s, now)
	switch {
	case s.Trip != "" && (s.Trip != probeFailed || t.trip == ""):
		t.trip, t.tripAt = s.Trip, now.Add(-s.TripAgo)
	case s.Trip == "" && s.State == breaker.Open && !s.Forced && (first || changed && was == breaker.Closed):
		t.trip, t.tripAt = s.Reason, now
	}
	t.openFor = max(t.openFor, s.Wait)
	told, ok := j.last(t.name)
	if ok && t.name != "" {
		t.hear(told)
		return
	}
	if changed && !first {
		j.note(entry{Kind: "breaker", Name: s.Name, From: was.String(), To: s.State.String(), Text: s.Reason}, now)
	}
}

const (
	probeFailed = "probe failed" // the reason of a trip that only goes on with an older one
	forced      = "forced"
	sameInstant = 50 * time.Millisecond // two looks at one instant differ by what the looks themselves took
)

// date goes by the instant that the circuit itself knows. One whose open time is over reads as half-open before anything has
// changed: then it is known from the looks alone.
func (t *track) date(s *breaker.Snapshot, now time.Time) {
	if s.Since <= 0 {
		return
	}
	moved := now.Add(-s.Since)
	if t.moved.IsZero() || moved.Sub(t.moved).Abs() > sameInstant {
		t.moved, t.since, t.atLeast = moved, moved, false
	}
}

// hear goes by what the circuit's hook told: the changes between two looks, too.
func (t *track) hear(h heard) {
	if h.trip != "" {
		t.trip, t.tripAt = h.trip, h.tripped
	}
}

// circuit puts the look and the memory together.
func (t *track) circuit(s *breaker.Snapshot, cfg *breaker.Config) *circuit {
	c := &circuit{
		ID: t.id, State: s.State.String(), Forced: s.Forced, Reason: clip(s.Reason, longestText),
		Since: t.since.UnixMilli(), AtLeast: t.atLeast, Trip: clip(t.trip, longestText),
		Wait: number(s.Wait.Seconds()), OpenFor: number(t.openFor.Seconds()),
		Calls: s.Calls, Failures: s.Failures, Slow: s.Slow, Rate: number(s.FailureRate),
		Probes: s.Probes, Successes: s.ProbeSuccesses,
	}
	if !t.tripAt.IsZero() {
		c.TripAt = t.tripAt.UnixMilli()
	}
	if cfg != nil {
		c.Needed, c.Rules = cfg.ProbeSuccesses, clip(rules(*cfg), longestText)
		if cfg.ProbeLease != breaker.NoLease {
			c.MaxProbes = cfg.Probes
		}
	}
	return c
}
