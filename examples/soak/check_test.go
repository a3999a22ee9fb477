package soak

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/rejection"
)

// check looks at what a call has returned.
func (c *call) check(v int, err error) {
	c.back(0)
	c.checkEvents(err, false)
	c.note(err)
	if err != nil {
		if v != 0 {
			c.fail("failed with %v, and returned %d", err, v)
		}
		c.checkError(err)
		return
	}
	if c.way == run {
		return
	}
	c.mu.Lock()
	values := c.values
	c.mu.Unlock()
	last := len(values) - 1
	if last < 0 || values[last] != v && c.way != detached {
		c.fail("succeeded with %d; the callback returned %v", v, values)
	}
}

// back: every call is back when its time is over; only who waits for a callback that ignores its context may be later.
func (c *call) back(more time.Duration) {
	now := time.Now()
	c.mu.Lock()
	c.returned = true
	limit := c.bound
	if more > 0 {
		limit = c.over // plan B has the caller's context as long as that lives
	}
	if c.way != detached && c.deaf.After(limit) {
		limit = c.deaf
	}
	c.mu.Unlock()
	limit = limit.Add(more)
	if !c.stage.w.bubbled() {
		limit = limit.Add(3 * time.Second) // a loaded machine
	}
	if now.After(limit) {
		c.fail("back %v too late, after %v", now.Sub(limit), now.Sub(c.began))
	}
}

func (c *call) note(err error) {
	n := &c.stage.w.counts
	switch {
	case err == nil:
	case rejection.Is(err):
		n.rejected.Add(1)
	default:
		n.failed.Add(1)
	}
}

// checkError: it is a rejection exactly when fn never ran, but for the ends of a call that are nobody's refusal.
func (c *call) checkError(err error) {
	c.mu.Lock()
	runs, failed := c.runs, c.failed
	c.mu.Unlock()
	refused := rejection.Is(err)
	if runs > 0 && refused {
		c.fail("the callback ran, and a rejection came out: %v", err)
	}
	if c.dead && (runs > 0 || !errors.Is(err, c.ctx.Err()) || !errors.Is(err, context.Cause(c.ctx))) {
		c.fail("under a context that was over: %v", err)
	}
	if runs == 0 && !refused && c.way != detached {
		stop, _ := errors.AsType[*retry.Error](err)
		limit, _ := errors.AsType[*timeout.Error](err)
		over := c.ctx.Err()
		switch {
		case over != nil && errors.Is(err, over):
		case limit != nil && (limit.Name == "total" || limit.Name == c.target.Name()): // the latter from a configuration
		case stop != nil && stop.Reason == retry.UnsafeReplay && c.target.strict:
		case c.target.mapped && isMapped(err):
		default:
			c.fail("the callback did not run, and no rejection came out: %T: %v", err, err)
		}
	}
	if stop, ok := err.(*retry.Error); ok && stop != nil && c.way != detached && stop.Attempts != runs &&
		!slices.ContainsFunc(failed, func(e error) bool { return same(e, err) }) { // the callback's own, of another loop
		c.fail("an error of %d attempts: %v", stop.Attempts, err)
	}
}

// checkReport: what DoDetailed tells is what happened.
func (c *call) checkReport(r pipeline.Report, err error) {
	c.mu.Lock()
	runs := c.runs
	c.mu.Unlock()
	elapsed := time.Since(c.began)
	bad := func(what string) { c.fail("%s: report %+v, error %v", what, r, err) }
	if r.Attempts != runs || len(r.History) != runs {
		bad("attempts")
	}
	switch refused := rejection.Is(err); {
	case (r.Disposition == pipeline.Succeeded) != (err == nil):
		bad("success")
	case r.Disposition == pipeline.Rejected && (runs > 0 || !refused && !c.target.mapped):
		bad("a rejection that is none")
	case refused && r.Disposition != pipeline.Rejected:
		bad("a rejection that is called otherwise")
	case r.Disposition == pipeline.Rejected && r.Layer == "":
		bad("nobody refused")
	case r.Disposition == pipeline.Deferred && (runs == 0 || r.Wait <= 0 && !c.target.bare):
		bad("a deferral without a wait")
	case (r.Disposition == pipeline.Cancelled || r.Disposition == pipeline.Expired) && refused:
		bad("the context's end as a rejection")
	case r.Reason != 0 && err == nil, r.Wait < 0, r.Waited < 0, r.Waited > r.Elapsed && c.stage.w.clock == nil:
		bad("fields")
	case c.stage.w.exact() && r.Elapsed != elapsed:
		bad("elapsed " + elapsed.String())
	}
	for i, a := range r.History {
		if a.Number != i+1 || a.Took < 0 || a.Delay < 0 ||
			c.stage.w.clock == nil && (a.Began+a.Took > r.Elapsed || i > 0 && a.Began < r.History[i-1].Began+r.History[i-1].Took+a.Delay) {
			bad("history")
		}
	}
}

// checkFallback looks at a DoOr whose plan B ran.
func (c *call) checkFallback(v int, err, original error) {
	c.back(c.target.fallback)
	c.checkEvents(original, false)
	c.note(original)
	c.checkError(original)
	if err != nil && (v != 0 || !same(err, original)) || err == nil && v != 98 && v != 99 {
		c.fail("plan B for %v: %d, %v", original, v, err)
	}
}

// unwound looks at a call that a panic or runtime.Goexit (what is nil) goes through, and lets it go on.
func (c *call) unwound(what any) {
	c.back(0)
	c.stage.w.counts.panicked.Add(1)
	c.checkEvents(pipeline.ErrPanicked, true)
	c.mu.Lock()
	thrown := c.thrown
	c.mu.Unlock()
	if what == nil {
		what = exit{}
	}
	ok := what == any(hook{})
	for i, v := range thrown {
		ok = ok || v == what && (i == len(thrown)-1 || c.way == detached)
	}
	if !ok {
		c.fail("unwound with %v; the callback threw %v", what, thrown)
	}
	if c.parent == nil {
		return
	}
	c.parent.throw(what)
	if what != any(exit{}) {
		panic(what)
	}
}

// isMapped says that the mapper's own word was that this is no rejection.
func isMapped(err error) bool {
	own, ok := errors.AsType[errMapped](err)
	return ok && !own.rejected
}

// same is identity, for errors that may not be comparable.
func same(a, b error) bool {
	if a == nil || b == nil {
		return a == b
	}
	if !reflect.ValueOf(a).Comparable() || !reflect.ValueOf(b).Comparable() {
		return reflect.DeepEqual(a, b)
	}
	return a == b
}
