package main

import (
	"time"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
)

// policy is what every process puts around its calls: the real layers, on the bubble's time.
type policy struct {
	name, label, title string // label: where there is little room
	sendsBudget        bool   // along with its requests: the time that is left
	build              func(site) (*pipeline.Pipeline, error)
}

// site is the process that a pipeline is built for.
type site struct {
	storm  *storm
	name   string
	limits limits
	rand   func() float64
}

var policies = []policy{
	{name: "none", label: "none", title: "no protection", build: func(s site) (*pipeline.Pipeline, error) {
		return pipeline.For(s.name).Build()
	}},
	{name: "naive", label: "naive", title: "naive: 3 tries, 100 ms apart", build: func(s site) (*pipeline.Pipeline, error) {
		return s.tries(retry.Config{
			Backoff: retry.Constant(100 * time.Millisecond), Jitter: retry.None, NoBudget: true,
			RetryAfter: func(error) (time.Duration, bool) { return 0, false },
		}).Build()
	}},
	{name: "jitter", label: "jitter", title: "3 tries, exponential, full jitter", build: func(s site) (*pipeline.Pipeline, error) {
		return s.tries(retry.Config{NoBudget: true}).Build()
	}},
	{name: "budget", label: "+ budget", title: "+ retry budget", build: func(s site) (*pipeline.Pipeline, error) {
		return s.tries(retry.Config{}).Build()
	}},
	{name: "inside", label: "breaker inside", title: "+ breaker inside the retry", build: func(s site) (*pipeline.Pipeline, error) {
		return s.tries(retry.Config{}).Breaker(s.breaker()).Build()
	}},
	{name: "outside", label: "breaker outside", title: "+ breaker outside the retry", build: func(s site) (*pipeline.Pipeline, error) {
		return s.tries(retry.Config{}).Breaker(s.breaker()).BreakerOutsideRetry().Build()
	}},
	{name: "full", label: "full default", title: "full default pipeline", sendsBudget: true, build: func(s site) (*pipeline.Pipeline, error) {
		return s.full().Build()
	}},
}

// tries is a retry around attempts of limited time.
func (s site) tries(cfg retry.Config) pipeline.Builder {
	cfg.Name, cfg.Rand = s.name, s.rand
	return pipeline.For(s.name).Retry(retry.MustNew(cfg)).
		AttemptTimeout(timeout.MustNew(timeout.Config{Name: s.name, Limit: s.limits.attempt}))
}

func (s site) breaker() *breaker.Breaker {
	s.storm.tally.circuit()
	return breaker.MustNew(breaker.Config{Name: s.name, Rand: s.rand, OnChange: s.storm.tally.change})
}

// full is every layer that has a default, at its default, and the three that need a number. A rate limit has no default: its
// number is a contract, and there is none here.
func (s site) full() pipeline.Builder {
	return s.tries(retry.Config{}).
		Timeout(timeout.MustNew(timeout.Config{Name: s.name + " in all", Limit: s.limits.total})).
		Cooldown(cooldown.MustNew(cooldown.Config{Name: s.name})).
		Breaker(s.breaker()).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: s.name, MaxConcurrent: 32}))
}
