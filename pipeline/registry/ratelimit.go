package registry

import (
	"context"
	"math"
	"math/big"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/ratelimit/redislimit"
)

// limitSpec is one rate limiter as it was configured.
type limitSpec struct {
	entry
	cfg  ratelimit.Config
	rate *big.Rat // tokens per period, as written; 0 = a quota
	per  time.Duration
	sharing
	prefetch int
}

func (s *limitSpec) quota() bool { return s.rate != nil && s.rate.Sign() == 0 }

type limiter interface {
	ratelimit.Limit
	Update(ratelimit.Config) error
	Config() ratelimit.Config
}

func sharingOfLimit(s *limitSpec) *sharing { return &s.sharing }

const wantRate = "a number of tokens per period, such as 10 or 0.5, or 0 for a quota that is never refilled"

var limitKind = &kind[limitSpec, limiter]{
	section: "rate-limiter",
	entry:   func(s *limitSpec) *entry { return &s.entry },
	keys: []key[limitSpec]{
		wholeKey("max-tokens", 1, math.MaxInt, func(s *limitSpec) *int { return &s.cfg.Burst }),
		{name: "refill-rate", read: func(d *decoder, a at, s *limitSpec) {
			if r, ok := d.rational(a, wantRate); ok {
				s.rate = r
			}
		}, show: func(s *limitSpec) string {
			if s.rate == nil {
				return ""
			}
			f, _ := s.rate.Float64()
			return float(f)
		}},
		{name: "per", read: durationKey("", positive, func(s *limitSpec) *time.Duration { return &s.per }).read, show: func(s *limitSpec) string {
			if s.quota() {
				return ""
			}
			return s.per.String()
		}},
		durationKey("timeout", orZero, func(s *limitSpec) *time.Duration { return &s.cfg.MaxWait }),
		sharedKey(sharingOfLimit),
		outageOf(sharingOfLimit),
		instancesOf(sharingOfLimit),
		zero(idleKey(sharingOfLimit), "until the bucket is full"),
		ofSharing(zero(wholeKey("prefetch", 0, math.MaxInt, func(s *limitSpec) *int { return &s.prefetch }), "0"), sharingOfLimit),
	},
	needs: func(d *decoder, s *limitSpec) {
		if !s.has("refill-rate") {
			d.add(requires(s.at, "refill-rate", wantRate))
		}
	},
	check: checkLimit,
	make: func(e *env, s *limitSpec) (limiter, error) {
		cfg := s.config(e)
		switch {
		case s.shared && s.quota():
			opts := s.options(e)
			opts.IdleTTL = 0 // never, too
			return redislimit.NewQuota(e.store.client, cfg.Name, cfg.Burst, opts)
		case s.shared:
			return redislimit.New(e.store.client, cfg, s.options(e))
		case s.quota():
			return ratelimit.NewQuota(cfg.Name, cfg.Burst)
		}
		return ratelimit.New(cfg)
	},
	update: func(e *env, l limiter, s *limitSpec) error { return l.Update(s.config(e)) },
	shared: func(s *limitSpec) bool { return s.shared },
	fixed: func(was, s *limitSpec) (string, string) {
		switch {
		case was.quota() == s.quota():
			return "", ""
		case was.quota():
			return "refill-rate", "0 (a quota)"
		}
		return "refill-rate", "a rate above 0"
	},
	inForce: func(l limiter, s *limitSpec) limitSpec {
		now := *s
		now.cfg = l.Config()
		return now
	},
	inspect: func(l limiter) (leaf.Snapshot, bool) { return l.Inspect(), true },
	close:   func(ctx context.Context, l limiter) error { return closeShared(ctx, l) },
}

var limitFields = map[string]string{"Rate": "refill-rate", "Per": "per", "Burst": "max-tokens", "MaxWait": "timeout"}

func checkLimit(d *decoder, s *limitSpec) {
	s.cfg.Name = s.name
	s.inherit(&s.entry, d.store)
	if !s.has("per") {
		s.per = time.Second
	}
	if s.rate == nil {
		return
	}
	if s.quota() {
		checkQuota(d, s)
		return
	}
	if !s.has("max-tokens") { // what a whole rate would be, also for 0.5 per second
		whole := new(big.Int).Quo(s.rate.Num(), s.rate.Denom())
		s.cfg.Burst = 1
		if whole.IsInt64() {
			s.cfg.Burst = max(1, int(whole.Int64()))
		}
	}
	per := new(big.Int).Mul(s.rate.Denom(), big.NewInt(int64(s.per)))
	if !per.IsInt64() || !s.rate.Num().IsInt64() {
		d.bad(s.place("refill-rate"), "a rate of fewer digits")
		return
	}
	s.cfg.Rate, s.cfg.Per = int(s.rate.Num().Int64()), time.Duration(per.Int64())
	_, err := ratelimit.New(s.cfg)
	d.translate(&s.entry, "ratelimit", limitFields, err)
	if s.prefetch > s.cfg.Burst {
		d.bad(s.place("prefetch"), "0 (off) to %d (max-tokens)", s.cfg.Burst)
	}
}

// checkQuota: max-tokens with refill-rate 0.
func checkQuota(d *decoder, s *limitSpec) {
	if !s.has("max-tokens") {
		d.add(requires(s.at, "max-tokens", "the tokens of the quota, from 1, where refill-rate is 0"))
		return
	}
	for _, name := range []string{"per", "timeout"} {
		if a, ok := s.set[name]; ok && (name == "per" || s.cfg.MaxWait > 0) {
			d.bad(a, "none where refill-rate is 0: a quota is never refilled")
		}
	}
	if s.idle > 0 {
		d.bad(s.place("idle-ttl"), "0 (never) where refill-rate is 0: reclaiming the key would hand the quota back")
	}
	s.idle = -1
	if s.prefetch > 0 {
		d.bad(s.place("prefetch"), "0 (off) where refill-rate is 0")
	}
	_, err := ratelimit.NewQuota(s.name, s.cfg.Burst)
	d.translate(&s.entry, "ratelimit", limitFields, err)
}

func (s *limitSpec) config(e *env) ratelimit.Config {
	cfg := s.cfg
	if !s.quota() {
		cfg.Clock = e.clock
	}
	return cfg
}

func (s *limitSpec) options(e *env) redislimit.Options {
	return redislimit.Options{
		Prefix: e.store.prefix, Timeout: e.store.timeout, OnOutage: s.outage, Instances: s.instances, IdleTTL: s.idle, Prefetch: s.prefetch, OnStore: e.onStore,
	}
}
