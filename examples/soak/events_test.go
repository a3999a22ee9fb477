package soak

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/pipeline"
)

// checkEvents: one start, one end with the call's own result, and between them what can follow what.
func (c *call) checkEvents(err error, unwinding bool) {
	if !c.target.observed {
		return
	}
	c.mu.Lock()
	events, runs := c.events, c.runs
	c.mu.Unlock()
	attempts, problem := legal(events)
	if problem != "" {
		c.fail("events: %s", problem)
		return
	}
	end := events[len(events)-1]
	if !same(end.Err, err) {
		c.fail("the last event has %v, the call %v", end.Err, err)
	}
	if c.way != detached && attempts != runs {
		c.fail("%d attempts in the events", attempts)
	}
	if w := c.stage.w; w.exact() && (end.Time.Sub(events[0].Time) != end.Took || !events[0].Time.Equal(c.began)) {
		c.fail("the call began at %v and took %v", events[0].Time, end.Took)
	}
	if p := c.target.pool; p != nil {
		p.sent.retries.Add(int64(max(0, attempts-1)))
	}
}

// legal is the grammar of a call's events.
func legal(events []pipeline.Event) (attempts int, problem string) {
	if len(events) < 2 || events[0].Kind != pipeline.CallStarted || events[len(events)-1].Kind != pipeline.CallFinished {
		return 0, "no start, or no end"
	}
	scheduled, stopped := true, false // the first attempt needs no schedule
	for i, e := range events[1:] {
		last := i == len(events)-2
		if stopped && !last {
			return attempts, "something between the stop and the end"
		}
		switch e.Kind {
		case pipeline.AttemptFinished:
			attempts++
			if e.Attempt != attempts || !scheduled || e.Took < 0 {
				return attempts, fmt.Sprintf("event %d: no such attempt", i+1)
			}
			scheduled = false
		case pipeline.RetryScheduled:
			if e.Attempt != attempts+1 || e.Delay < 0 || e.Delay < e.Wait {
				return attempts, fmt.Sprintf("event %d: no such retry", i+1)
			}
			scheduled = true
		case pipeline.RetryStopped:
			if e.Attempt != attempts || e.Reason == 0 {
				return attempts, fmt.Sprintf("event %d: no such stop", i+1)
			}
			stopped = true
		case pipeline.GuardRejected:
			if e.Attempt != attempts+1 || e.Layer == "" || e.Err == nil {
				return attempts, fmt.Sprintf("event %d: no such refusal", i+1)
			}
		case pipeline.CallFinished:
			if !last || stopped && e.Err == nil {
				return attempts, fmt.Sprintf("event %d: no such end", i+1)
			}
		default:
			return attempts, fmt.Sprintf("event %d: %v", i+1, e.Kind)
		}
		if e.Kind != pipeline.AttemptFinished && e.Took < 0 {
			return attempts, "a negative time"
		}
	}
	return attempts, ""
}

func tell(events []pipeline.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "\n  %v %v attempt %d layer %q delay %v wait %v reason %v took %v: %v",
			e.Time.Format("05.000000"), e.Kind, e.Attempt, e.Layer, e.Delay, e.Wait, e.Reason, e.Took, e.Err)
	}
	return b.String()
}
