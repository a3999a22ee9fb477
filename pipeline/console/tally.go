package console

import (
	"context"
	"sync/atomic"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// tally counts a pipeline's events: adds on fixed words, no lock, no clock and no allocation, so that any rate of events costs the
// calls next to nothing. The sampler reads it once a second; what time a second was is its business alone.
type tally struct {
	text func(error) string

	started, finished         atomic.Uint64
	failed, refused, left     atomic.Uint64 // calls: left are those whose caller cancelled
	attempts, attemptFailures atomic.Uint64
	retries                   atomic.Uint64 // runs of fn beyond the first: what was sent again, not what was intended
	rejected                  [guardKinds]atomic.Uint64
	stopped                   [retry.UnsafeReplay + 1]atomic.Uint64
	timedOut, attemptTimedOut atomic.Uint64

	limits    atomic.Pointer[limits]
	latencies latencies
	errors    errorLog
}

// limits is what tells the two timeouts of a pipeline apart: Build sees to it that the attempt's is the shorter one.
type limits struct{ total, attempt timeout.Config }

// Kinds of guards, as indices.
const (
	cooldownKind = iota
	breakerKind
	rateLimitKind
	extraKind
	bulkheadKind
	otherKind
	guardKinds
)

func kindOf(layer string) int {
	switch layer {
	case "cooldown":
		return cooldownKind
	case "breaker":
		return breakerKind
	case "ratelimit":
		return rateLimitKind
	case "guard":
		return extraKind
	case "bulkhead":
		return bulkheadKind
	}
	return otherKind
}

// observe is the pipeline's subscriber.
func (t *tally) observe(_ context.Context, e pipeline.Event) {
	switch e.Kind {
	case pipeline.CallStarted:
		t.started.Add(1)
	case pipeline.AttemptFinished:
		t.attempts.Add(1)
		if e.Attempt > 1 {
			t.retries.Add(1)
		}
		if e.Err == nil {
			return
		}
		t.attemptFailures.Add(1)
		if l := t.limits.Load(); l != nil && fired(e.Err, l.attempt) {
			t.attemptTimedOut.Add(1)
		}
		t.errors.add("attempt", e.Err, t.text)
	case pipeline.RetryStopped:
		if int(e.Reason) < len(t.stopped) {
			t.stopped[e.Reason].Add(1)
		}
	case pipeline.GuardRejected:
		t.rejected[kindOf(e.Layer)].Add(1)
		t.errors.add(e.Layer, e.Err, t.text)
	case pipeline.CallFinished:
		t.finish(e)
	}
}

func (t *tally) finish(e pipeline.Event) {
	switch e.Disposition {
	case pipeline.Succeeded:
	case pipeline.Rejected:
		t.refused.Add(1)
		t.finished.Add(1)
		return // it took no time, and would make the others look fast
	case pipeline.Cancelled:
		t.left.Add(1)
	default:
		t.failed.Add(1)
		if l := t.limits.Load(); l != nil && fired(e.Err, l.total) {
			t.timedOut.Add(1)
		}
		t.errors.add("call", e.Err, t.text)
	}
	t.latencies.add(e.Took)
	t.finished.Add(1)
}

// fired says that err is the error of that very limit.
func fired(err error, limit timeout.Config) bool {
	e, ok := err.(*timeout.Error)
	return ok && e != nil && limit.Limit > 0 && e.Limit == limit.Limit && e.Name == limit.Name
}

// reading is a tally at one instant.
type reading struct {
	started, finished         uint64
	failed, refused, left     uint64
	attempts, attemptFailures uint64
	retries                   uint64
	rejected                  [guardKinds]uint64
	stopped                   [retry.UnsafeReplay + 1]uint64
	timedOut, attemptTimedOut uint64
}

// read reads ends before beginnings, so that what is in flight is never negative.
func (t *tally) read() (r reading) {
	r.finished = t.finished.Load()
	r.failed, r.refused, r.left = t.failed.Load(), t.refused.Load(), t.left.Load()
	r.attempts, r.attemptFailures, r.retries = t.attempts.Load(), t.attemptFailures.Load(), t.retries.Load()
	for i := range t.rejected {
		r.rejected[i] = t.rejected[i].Load()
	}
	for i := range t.stopped {
		r.stopped[i] = t.stopped[i].Load()
	}
	r.timedOut, r.attemptTimedOut = t.timedOut.Load(), t.attemptTimedOut.Load()
	r.started = t.started.Load()
	return r
}
