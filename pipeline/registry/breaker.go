package registry

import (
	"context"
	"math"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/breaker/redisbreaker"
)

// breakerSpec is one circuit breaker as it was configured.
type breakerSpec struct {
	entry
	cfg      breaker.Config
	size     int
	window   time.Duration
	recordOn matchers
	lease    time.Duration // of a probe; 0 = none, where it is set
	sharing
	reporters int
}

// circuit is a breaker that can be updated: the local one, and the shared one.
type circuit interface {
	breaker.Circuit
	Update(breaker.Config) error
	Config() breaker.Config
}

func sharingOfBreaker(s *breakerSpec) *sharing { return &s.sharing }

var breakerKind = &kind[breakerSpec, circuit]{
	section: "circuit-breaker",
	open:    true,
	entry:   func(s *breakerSpec) *entry { return &s.entry },
	keys: []key[breakerSpec]{
		worded(rateKey("failure-rate-threshold", failureRateOf), "off", failureRateOf),
		{name: "failure-threshold", read: wholeKey("", 1, math.MaxInt, failuresOf).read, show: func(s *breakerSpec) string {
			if n := s.cfg.FailureCount; n > 0 {
				return number(n)
			}
			return "off"
		}},
		zero(wholeKey("window-size", 1, 1<<16, func(s *breakerSpec) *int { return &s.size }), ""),
		zero(durationKey("window", positive, func(s *breakerSpec) *time.Duration { return &s.window }), ""),
		wholeKey("minimum-number-of-calls", 1, math.MaxInt, func(s *breakerSpec) *int { return &s.cfg.MinCalls }),
		worded(wholeKey("consecutive", 1, math.MaxInt, consecutiveOf), "off", consecutiveOf),
		zero(offDurationKey("slow-call", func(s *breakerSpec) *time.Duration { return &s.cfg.SlowCall }), "off"),
		zero(rateKey("slow-rate", func(s *breakerSpec) *float64 { return &s.cfg.SlowRate }), ""),
		durationKey("wait-duration-in-open", positive, func(s *breakerSpec) *time.Duration { return &s.cfg.OpenFor }),
		decimalKey("open-growth", 1, math.MaxFloat64, "a number from 1", func(s *breakerSpec) *float64 { return &s.cfg.OpenGrowth }),
		durationKey("max-open-for", positive, func(s *breakerSpec) *time.Duration { return &s.cfg.MaxOpenFor }),
		boolKey("open-jitter", func(s *breakerSpec) *bool { return &s.cfg.OpenJitter }),
		wholeKey("half-open-max-calls", 1, math.MaxInt, func(s *breakerSpec) *int { return &s.cfg.Probes }),
		wholeKey("probe-successes", 1, math.MaxInt, func(s *breakerSpec) *int { return &s.cfg.ProbeSuccesses }),
		{name: "half-open-probe-timeout", read: durationKey("", orZero, func(s *breakerSpec) *time.Duration { return &s.lease }).read, show: showLease},
		defaulting("all", matchersKey("record-on", func(s *breakerSpec) *matchers { return &s.recordOn })),
		zero(offDurationKey("blame-after", func(s *breakerSpec) *time.Duration { return &s.cfg.BlameAfter }), "half of the time given, at most 100ms"),
		sharedKey(sharingOfBreaker),
		outageOf(sharingOfBreaker),
		idleKey(sharingOfBreaker),
		ofSharing(wholeKey("min-reporters", 1, math.MaxInt, func(s *breakerSpec) *int { return &s.reporters }), sharingOfBreaker),
	},
	check: checkBreaker,
	make: func(e *env, s *breakerSpec) (circuit, error) {
		if s.shared {
			return newLazyBreaker(s.config(e), e.store.client, s.options(e))
		}
		return breaker.New(s.config(e))
	},
	update: func(e *env, c circuit, s *breakerSpec) error { return c.Update(s.config(e)) },
	shared: func(s *breakerSpec) bool { return s.shared },
	inForce: func(c circuit, s *breakerSpec) breakerSpec {
		now := *s
		now.cfg = c.Config()
		now.size, now.window = now.cfg.Window.Size()
		return now
	},
	inspect: func(c circuit) (leaf.Snapshot, bool) { return c.Inspect(), true },
	close:   func(ctx context.Context, c circuit) error { return closeShared(ctx, c) },
}

func failureRateOf(s *breakerSpec) *float64 { return &s.cfg.FailureRate }
func failuresOf(s *breakerSpec) *int        { return &s.cfg.FailureCount }
func consecutiveOf(s *breakerSpec) *int     { return &s.cfg.Consecutive }

func showLease(s *breakerSpec) string {
	switch s.cfg.ProbeLease {
	case breaker.NoLease:
		return "0s"
	case 0:
		return "the open time"
	}
	return s.cfg.ProbeLease.String()
}

var breakerFields = map[string]string{
	"Window": "window", "MinCalls": "minimum-number-of-calls", "FailureRate": "failure-rate-threshold", "FailureCount": "failure-threshold",
	"Consecutive": "consecutive", "SlowCall": "slow-call", "SlowRate": "slow-rate", "OpenFor": "wait-duration-in-open",
	"OpenGrowth": "open-growth", "MaxOpenFor": "max-open-for", "Probes": "half-open-max-calls", "ProbeSuccesses": "probe-successes",
	"ProbeLease": "half-open-probe-timeout", "BlameAfter": "blame-after",
}

func checkBreaker(d *decoder, s *breakerSpec) {
	s.cfg.Name = s.name
	if a, ok := s.set["failure-rate-threshold"]; ok && !a.is("off") {
		s.cfg.FailureCount = 0 // ignored where a rate is set
	}
	if s.size > 0 {
		s.cfg.Window = breaker.Count(s.size)
		if s.window > 0 {
			s.cfg.Window = s.cfg.Window.Within(s.window)
		}
	} else if s.window > 0 {
		s.cfg.Window = breaker.Time(s.window)
	}
	if s.has("half-open-probe-timeout") {
		if s.cfg.ProbeLease = s.lease; s.lease == 0 {
			s.cfg.ProbeLease = breaker.NoLease
		}
	}
	if recorded := s.recordOn.any; recorded != nil && !s.recordOn.all() { // all is the default, which costs less
		s.cfg.Ignore = func(err error) bool { return !recorded(err) } // no success: that would close a half-open circuit
	}
	if !s.has("idle-ttl") {
		s.idle = 720 * time.Hour
	}
	if !s.has("min-reporters") {
		s.reporters = 1
	}
	s.inherit(&s.entry, d.store)
	made, err := breaker.New(s.cfg)
	if err != nil {
		d.translate(&s.entry, "breaker", breakerFields, err)
		return
	}
	s.checkDefaults(d, made.Config())
}

// checkDefaults finds what is written, and could do nothing beside a default that nobody wrote.
func (s *breakerSpec) checkDefaults(d *decoder, now breaker.Config) {
	if s.has("consecutive") && !s.has("minimum-number-of-calls") && now.Consecutive >= now.MinCalls {
		d.bad(s.place("consecutive"), "less than minimum-number-of-calls, which is %d by default: it could never be reached", now.MinCalls)
	}
	if now.OpenGrowth > 1 && !s.has("max-open-for") && now.MaxOpenFor <= now.OpenFor {
		d.bad(s.place("open-growth"), "a max-open-for as well, above wait-duration-in-open: by default it is %v, and nothing would grow", now.MaxOpenFor)
	}
}

// config is the leaf's, with what the document cannot say.
func (s *breakerSpec) config(e *env) breaker.Config {
	cfg := s.cfg
	cfg.OnChange, cfg.Clock, cfg.Rand = e.onChange, e.clock, e.rand
	return cfg
}

func (s *breakerSpec) options(e *env) redisbreaker.Options {
	return redisbreaker.Options{
		Prefix: e.store.prefix, Timeout: e.store.timeout, OnOutage: s.outage, IdleTTL: s.idle, MinReporters: s.reporters, OnStore: e.onStore,
	}
}
