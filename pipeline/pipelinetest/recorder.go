package pipelinetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fairlead/fairlead/pipeline"
)

// Recorder keeps the events of the pipelines that it observes, in the order in which they were told. The zero Recorder is
// ready; it is safe for concurrent use, and must not be copied.
type Recorder struct {
	mu     sync.Mutex
	events []pipeline.Event
}

// Observe is for Builder.Observe.
func (r *Recorder) Observe(_ context.Context, e pipeline.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events is a copy of all that was told so far, or of the kinds that are given.
func (r *Recorder) Events(kinds ...pipeline.Kind) []pipeline.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := slices.Clone(r.events)
	if len(kinds) == 0 {
		return events
	}
	return slices.DeleteFunc(events, func(e pipeline.Event) bool { return !slices.Contains(kinds, e.Kind) })
}

// Reset forgets everything: what comes next is the beginning.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// String is one line per event, with the time since the first: for a failing test to show.
func (r *Recorder) String() string {
	var b strings.Builder
	events := r.Events()
	for _, e := range events {
		fmt.Fprintf(&b, "%-12v %s", e.Time.Sub(events[0].Time), e.Kind)
		field := func(name string, value any, given bool) {
			if given {
				fmt.Fprintf(&b, " %s=%v", name, value)
			}
		}
		field("pipeline", e.Pipeline, true)
		field("operation", e.Operation, e.Operation != "")
		field("layer", e.Layer, e.Layer != "")
		field("attempt", e.Attempt, e.Attempt != 0)
		field("delay", e.Delay, e.Delay != 0)
		field("wait", e.Wait, e.Wait != 0)
		field("reason", e.Reason, e.Reason != 0)
		field("took", e.Took, e.Took != 0)
		field("err", fmt.Sprintf("%q", fmt.Sprint(e.Err)), e.Err != nil)
		b.WriteByte('\n')
	}
	return b.String()
}

// attempts is when fn was run, since the first event; in the order of their beginnings.
func (r *Recorder) attempts() []time.Duration {
	events := r.Events()
	var began []time.Duration
	for _, e := range events {
		if e.Kind == pipeline.AttemptFinished {
			began = append(began, e.Time.Add(-e.Took).Sub(events[0].Time))
		}
	}
	slices.Sort(began)
	return began
}
