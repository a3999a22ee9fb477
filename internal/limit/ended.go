package limit

import (
	"context"
	"errors"
)

// verdict is who ended a Ctx.
type verdict uint8

const (
	open verdict = iota
	limitFired
	parentCancelled
	parentExpired
)

// End says that the callback has returned: the Ctx is cancelled (Err is context.Canceled), unless it had ended before or
// is kept ([Keep]). Who had ended it until now stays known. It is idempotent.
func (c *Ctx) End() {
	if c.armed.CompareAndSwap(nil, cancelled) { // nobody has watched, and nobody keeps it: keeping arms
		return
	}
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over = true
	a, kept := c.armed.Load(), c.keeps > 0
	if a != cancelled && c.verdict == open {
		c.verdict = a.verdict()
	}
	c.mu.Unlock()
	if !kept {
		a.cancel()
	}
}

// Ended is how the Ctx stands at the instant end, at which the callback returned; it is to be asked before End.
//
// fired: this limit ended it, which is known by the identity of its cause or, where nothing is on record, by end being at
// or after its instant. Otherwise parent is how the parent had ended it, context.Canceled or context.DeadlineExceeded,
// or nil. Once armed, the parent itself is not asked: it may have ended after the callback. Once there is an answer,
// it stays.
func (c *Ctx) Ended(end int64) (fired bool, parent error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdict == open {
		c.verdict = c.judge(end)
	}
	switch c.verdict {
	case limitFired:
		return true, nil
	case parentCancelled:
		return false, context.Canceled
	case parentExpired:
		return false, context.DeadlineExceeded
	}
	return false, nil
}

// judge runs under mu.
func (c *Ctx) judge(end int64) verdict {
	a := c.armed.Load()
	if a != nil && !c.over && a != cancelled { // after End the record is End's own
		if v := a.verdict(); v != open {
			return v
		}
	}
	switch {
	case end >= c.until && c.inherits:
		return parentExpired
	case end >= c.until:
		return limitFired
	case a == nil || a == cancelled:
		return verdictOf(c.parent.Err())
	}
	return open
}

// verdict is what is on record.
func (a *armed) verdict() verdict {
	err := a.Err()
	if err == nil {
		return open
	}
	if a.cause != nil && context.Cause(a.Context) == a.cause {
		return limitFired
	}
	return verdictOf(err)
}

func verdictOf(parent error) verdict {
	switch {
	case parent == nil:
		return open
	case errors.Is(parent, context.DeadlineExceeded):
		return parentExpired
	}
	return parentCancelled
}
