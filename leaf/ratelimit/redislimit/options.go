package redislimit

import (
	"fmt"
	"math"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/redis/go-redis/v9"
)

// Options is how a limiter uses its store. Zero fields mean the default.
type Options struct {
	// Prefix of the key, which is Prefix:limit:{name} (Prefix:quota:{name} for a quota); "" = "fairlead"; at most 256 bytes.
	Prefix string
	// Timeout of one store call; 0 = 50 ms; else positive. A call that arrives while another is under way rides on the next,
	// so that its own wait is up to twice as long with a store that is slow but answers; with one that does not, it is not.
	// (One call of the store holds 4,000 that ask for another n than their neighbours in the line; more of them wait for a third.)
	Timeout time.Duration
	// OnOutage is what happens to calls while the store cannot be asked; 0 = leaf.FailLocal.
	OnOutage leaf.Outage
	// Instances is how many processes share the limit; 0 = 1; else from 1. It matters in a leaf.FailLocal outage alone: Rate
	// and Burst of the local limiter are max(1, floor(limit/Instances)).
	Instances int
	// IdleTTL is the extra life of an idle key beyond the time in which its bucket fills, when losing it changes nothing;
	// 0 = none; -1 = the key never expires; else positive. A quota never expires: 0 or -1, everything else is an error.
	IdleTTL time.Duration
	// Prefetch is how many tokens are taken ahead when the store is asked, for the calls to come; 0 = off: the exact fleet-wide
	// order of taking. In any window at most processes × Prefetch calls more are admitted; since the start, none. 0 to Burst.
	Prefetch int
	// Now is virtual time for tests, from 2020 on; nil = the server's TIME. Keys then live at least 1 h.
	Now func() time.Time
	// OnStore is told when the store fails and when it recovers; nil = nobody is.
	OnStore leaf.OnStore
}

// store is what the shared part knows, defaults filled in.
func (o Options) store() redisscript.Options {
	return redisscript.Options{Prefix: o.Prefix, Timeout: o.Timeout, OnOutage: o.OnOutage, Now: o.Now, OnStore: o.OnStore, Aside: true}
}

// filled is o with its defaults, or everything that is wrong with it.
func (o Options) filled(client redis.UniversalClient, name string, quota bool) (Options, error) {
	bad := check.List{Name: name}
	s, err := o.store().Check("redislimit", client)
	bad.Add(err)
	o.Prefix, o.Timeout = s.Prefix, s.Timeout
	switch {
	case quota && o.IdleTTL != 0 && o.IdleTTL != -1:
		bad.Bad("redislimit", "IdleTTL", o.IdleTTL, "0: a quota's key that expires hands the quota out again")
	case o.IdleTTL < -1:
		bad.Bad("redislimit", "IdleTTL", o.IdleTTL, "0 (the time to full alone), -1 (never) or a positive duration")
	}
	if o.Instances < 0 {
		bad.Bad("redislimit", "Instances", o.Instances, "0 (1) or more")
	}
	if o.Instances == 0 {
		o.Instances = 1
	}
	if o.Prefetch < 0 {
		bad.Bad("redislimit", "Prefetch", o.Prefetch, "0 (off) to Burst")
	}
	return o, bad.Err()
}

// fits checks what depends on both.
func (o Options) fits(cfg ratelimit.Config) error {
	bad := check.List{Name: cfg.Name}
	if o.Prefetch > cfg.Burst {
		bad.Bad("redislimit", "Prefetch", o.Prefetch, fmt.Sprintf("0 (off) to %d (Burst)", cfg.Burst))
	}
	return bad.Err()
}

// idle is IdleTTL in ms; -1 = never expires.
func (o Options) idle() int64 {
	if o.IdleTTL < 0 {
		return -1
	}
	return (min(int64(o.IdleTTL), math.MaxInt64-1e6) + 1e6 - 1) / 1e6
}

// share is the limiter of one process in a FailLocal outage.
func (o Options) share(p policy) (*ratelimit.Limiter, error) {
	of := func(n int) int { return max(1, n/o.Instances) }
	cfg := p.cfg
	cfg.Burst = of(cfg.Burst)
	if p.quota {
		return ratelimit.NewQuota(cfg.Name, cfg.Burst)
	}
	cfg.Rate = of(cfg.Rate)
	return ratelimit.New(cfg)
}
