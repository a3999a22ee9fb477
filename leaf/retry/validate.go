package retry

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/follow"
	"github.com/fairlead/fairlead/internal/refusal"
)

const (
	defaultAttempts = 3
	mostAttempts    = 64
	defaultBase     = 100 * time.Millisecond
	defaultMaxDelay = 20 * time.Second
)

// validate is every problem of c at once.
func (c Config) validate() error {
	bad := check.List{Name: c.Name}
	if c.MaxAttempts < Unlimited || c.MaxAttempts > mostAttempts {
		bad.Bad("retry", "MaxAttempts", c.MaxAttempts, "0 (the default), Unlimited, or 1 to 64")
	}
	c.Jitter.check(&bad)
	notNegative(&bad, "MaxDelay", c.MaxDelay)
	c.checkBackoff(&bad)
	notNegative(&bad, "MaxRetryAfter", c.MaxRetryAfter)
	notNegative(&bad, "MaxElapsed", c.MaxElapsed)
	notNegative(&bad, "Reserve", c.Reserve)
	c.checkBudget(&bad)
	if c.Strict && c.MaxAttempts != 1 && c.RetryIf == nil {
		bad.Bad("retry", "RetryIf", "nil", "a function, as Strict asks for, unless MaxAttempts is 1")
	}
	if c.Clock != nil && check.Nil(c.Clock) {
		bad.Bad("retry", "Clock", check.Type(c.Clock), "nil itself (real time) or a clock")
	}
	return bad.Err()
}

func notNegative(bad *check.List, field string, d time.Duration) {
	if d < 0 {
		bad.Bad("retry", field, d, "0 (the default) or a positive duration")
	}
}

// checkBackoff asks for the first step: invalid parameters give a negative one.
// A MaxDelay of 20 s is the default written out, and means the same as 0.
func (c Config) checkBackoff(bad *check.List) {
	if c.Backoff == nil {
		c.Backoff = Exponential(defaultBase)
	}
	first, fault := firstStep(c.Backoff)
	switch {
	case fault != nil:
		bad.Bad("retry", "Backoff", fmt.Sprintf("one that panics for retry 1 (%v)", fault), "a delay for every retry from 1")
	case first < 0:
		bad.Bad("retry", "Backoff", fmt.Sprintf("%v for retry 1", first),
			"0 or more (Exponential takes no negative base, ExponentialBy a finite factor from 1)")
	case c.MaxDelay > 0 && c.MaxDelay != defaultMaxDelay && c.MaxDelay < first:
		bad.Bad("retry", "MaxDelay", c.MaxDelay, fmt.Sprintf("at least Backoff's first step, %v", first))
	}
}

func firstStep(b Backoff) (d time.Duration, fault any) {
	defer func() { fault = recover() }()
	return b(1), nil
}

func (c Config) checkBudget(bad *check.List) {
	switch {
	case c.Budget != nil && check.Nil(c.Budget):
		bad.Bad("retry", "Budget", check.Type(c.Budget), "nil itself (a private budget) or a budget")
	case c.Budget != nil && c.NoBudget:
		bad.Bad("retry", "NoBudget", "true beside a Budget", "one of them")
	case c.Budget == nil && c.Strict && c.MaxAttempts != 1:
		bad.Bad("retry", "Budget", "nil", "a budget, as Strict asks for, unless MaxAttempts is 1")
	}
}

// filled is c with its constant defaults.
func (c Config) filled() Config {
	if c.MaxAttempts == 0 {
		c.MaxAttempts = defaultAttempts
	}
	if c.Backoff == nil {
		c.Backoff = Exponential(defaultBase)
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = defaultMaxDelay
	}
	c.told.maxRetryAfter = follow.Tell(&c.MaxRetryAfter, cmp.Or(c.MaxRetryAfter, c.MaxDelay))
	return c
}

// asked is the wait that the other side asked for with err; 0 = none.
func (c *Config) asked(err error) time.Duration {
	find := c.RetryAfter
	if find == nil {
		if refusal.Plain(err) {
			return 0
		}
		find = refusal.LowerBound
	}
	if wait, ok := find(err); ok && wait > 0 {
		return wait
	}
	return 0
}
