package pipeline

import (
	"errors"
	"time"

	"github.com/fairlead/fairlead/internal/ended"
	"github.com/fairlead/fairlead/internal/refusal"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/retry"
)

// again decides whether the call goes on after an attempt that failed or was not admitted, and waits for it.
func (c *call) again() bool {
	switch {
	case c.final != nil:
		return false
	case c.endedBy != nil:
		return c.giveUp()
	case c.pending != nil:
		return c.afterRefusal() && c.backoff()
	default:
		return c.afterFailure() && c.backoff()
	}
}

// stop ends the call with err. It says false.
func (c *call) stop(err error) bool {
	c.final = err
	return false
}

// giveUp: ctx ended before fn could run. The last real failure stays reachable: the loop knows how.
func (c *call) giveUp() bool {
	if c.looping {
		return c.stop(c.loop.Refused(c.ctx, c.endedBy, false))
	}
	return c.stop(c.endedBy)
}

// afterFailure: fn ran and failed.
func (c *call) afterFailure() bool {
	c.hint()
	if !c.looping || refusal.Nested(c.failure) || c.cutRefusal() {
		return c.stop(c.failure)
	}
	if final := c.loop.Judge(c.ctx, c.failure); final != nil {
		return c.stop(final)
	}
	return c.peekCooldown() && c.peekBreaker()
}

// peekCooldown and peekBreaker ask before the backoff is slept, so that a caller who will be refused is told at once.
func (c *call) peekCooldown() bool {
	if p := c.plan.cooldown; p != nil {
		if err := p.Peek(c.ctx); err != nil {
			return c.notBefore(err)
		}
	}
	return true
}

func (c *call) peekBreaker() bool {
	if p := c.plan.breaker; p != nil {
		if err := p.Peek(c.ctx); err != nil {
			c.noteRefusal(kindBreaker, err)
			return c.stop(c.loop.Refused(c.ctx, err, false))
		}
	}
	return true
}

// afterRefusal: a guard refused this attempt. A later attempt waits for the cooldown instead, and consumes nothing.
func (c *call) afterRefusal() bool {
	by, err := c.pending, c.refusal
	c.pending, c.refusal = nil, nil
	if by.kind == kindCooldown && c.looping {
		return c.notBefore(err) && c.peekBreaker()
	}
	c.noteRefusal(by.kind, err)
	if !c.looping {
		return c.stop(err)
	}
	if final := c.loop.Refused(c.ctx, err, by.retried && refusal.Is(err) && !storeFailed(err)); final != nil {
		return c.stop(final)
	}
	return c.peekCooldown() && c.peekBreaker()
}

// storeFailed says that err stops the loop always: an outage is no verdict, and a retry only feeds it.
func storeFailed(err error) bool {
	_, ok := errors.AsType[*leaf.StoreError](err)
	return ok
}

// notBefore makes the cooldown's wait the lower bound of the delay; one that does not fit is a deferral. A call whose fn
// never ran is refused instead, and a cooldown that names no wait can only refuse.
func (c *call) notBefore(err error) bool {
	wait, ok := refusal.RetryAfter(err)
	if c.runs == 0 || !ok || wait <= 0 || storeFailed(err) {
		c.noteRefusal(kindCooldown, err)
		return c.stop(c.loop.Refused(c.ctx, err, false))
	}
	if final := c.loop.NotBefore(c.ctx, wait); final != nil {
		c.noteRefusal(kindCooldown, err)
		return c.stop(final)
	}
	return true
}

// backoff pays for the retry and sleeps.
func (c *call) backoff() bool {
	if final := c.loop.Reserve(c.ctx); final != nil {
		return c.stop(final)
	}
	delay := c.loop.Delay()
	if c.plan.observe != nil {
		c.tell(c.plan.clock.Now(), &Event{Kind: RetryScheduled, Attempt: c.runs + 1, Delay: delay, Wait: c.loop.Wait()})
	}
	if c.runs > 0 {
		ended.TellRetry(c.failure)
	}
	began := c.waitBegins()
	final := c.loop.Sleep(c.ctx)
	c.waitEnds(began)
	if final != nil {
		return c.stop(final)
	}
	c.delay += delay
	return true
}

// noteRefusal tells of a guard's refusal, and remembers that there was one.
func (c *call) noteRefusal(by kind, err error) {
	c.refused, c.by = true, by
	if c.plan.observe != nil {
		c.tell(c.plan.clock.Now(), &Event{Kind: GuardRejected, Layer: by.String(), Attempt: c.runs + 1, Err: err, Wait: hinted(err)})
	}
}

// hint tells the cooldown the wait that fn's failure carries.
func (c *call) hint() {
	if c.plan.hinter == nil {
		return
	}
	if wait := c.asked(); wait > 0 {
		c.plan.hinter.Hint(c.caller, wait)
	}
}

// cutRefusal says that fn came back with a nested pipeline's refusal after the attempt's limit: the failure is that limit's, and
// no more retried than the refusal.
func (c *call) cutRefusal() bool { return c.found == leaf.TimedOut && refusal.Is(c.outcome.Err) }

// asked is the wait that fn's last failure asks for; 0 = none. A refusal that came out of fn, however it is wrapped, is some
// guard's of this process, and says nothing of the other side.
func (c *call) asked() time.Duration {
	if c.failure == nil || refusal.Is(c.failure) || refusal.Nested(c.failure) {
		return 0
	}
	if stop, ok := errors.AsType[*retry.Error](c.failure); ok && stop != nil && stop.Reason == retry.Refused {
		return 0
	}
	find := refusal.RetryAfter
	if c.plan.retry != nil {
		if own := c.plan.retry.Config().RetryAfter; own != nil {
			find = own
		}
	}
	wait, ok := find(c.failure)
	if !ok || wait < 0 {
		return 0
	}
	return wait
}
