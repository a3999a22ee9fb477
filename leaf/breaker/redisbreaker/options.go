package redisbreaker

import (
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
)

// defaultIdleTTL is Options.IdleTTL's.
const defaultIdleTTL = 720 * time.Hour

// Options is what a shared breaker needs besides its Config. Zero fields mean the documented default.
type Options struct {
	// Prefix of the key, which is prefix:breaker:{name}; "" = "fairlead"; at most 256 bytes.
	Prefix string
	// Timeout of one store call; 0 = 50 ms; else positive. A probe's admission waits no longer than this, or than its ctx.
	Timeout time.Duration
	// OnOutage is what happens while the store cannot be asked; 0 = leaf.FailLocal: the breaker of this process decides.
	// leaf.FailOpen admits. leaf.FailClosed refuses a call that would be a probe, with a [leaf.StoreError], and nobody else.
	// What is known of an open circuit stays in force under each of them.
	OnOutage leaf.Outage
	// IdleTTL is the life of a key that nobody uses; 0 = 720 h; -1 = for ever; else from 1 ms. A key never ends before its
	// open time. A key that is gone is a closed circuit, to whoever knows of no open one.
	IdleTTL time.Duration
	// MinReporters is how many instances must have seen failures (or slow calls) within the window before the circuit opens
	// for all; 0 = 1; else from 1. Instances are counted, not OS processes. A probe's failure re-opens alone.
	MinReporters int
	// Now is virtual time, for tests; nil = the server's clock, and the monotonic one for what is known of it here. With it
	// keys live for at least 1 h of real time.
	Now func() time.Time
	// OnStore is told when the store fails and recovers, and of each probe whose result came after its lease (overage); nil = nobody.
	// It runs outside every lock, and may call this breaker, though not its Close; no call waits for one that is slow. A panic in it
	// arrives at the next Acquire.
	OnStore leaf.OnStore
}

// check is o with its defaults filled in, and everything that is wrong with it. What the store checks it checks itself.
func (o Options) check(name string) (Options, error) {
	l := check.List{Name: name}
	if o.IdleTTL != -1 && o.IdleTTL != 0 && o.IdleTTL < time.Millisecond {
		l.Bad("redisbreaker", "IdleTTL", o.IdleTTL, "from 1ms, 0 (720h), or -1 (for ever)")
	}
	if o.MinReporters < 0 {
		l.Bad("redisbreaker", "MinReporters", o.MinReporters, "from 1, or 0 for the default")
	}
	if o.IdleTTL == 0 {
		o.IdleTTL = defaultIdleTTL
	}
	o.MinReporters = max(1, o.MinReporters)
	return o, l.Err()
}

// open makes the store, told decides what else happens at its events.
func (o Options) open(client redis.UniversalClient, name string, told leaf.OnStore) (*redisscript.Store, error) {
	return redisscript.Open(client, "redisbreaker", "breaker", name, redisscript.Options{
		Prefix: o.Prefix, Timeout: o.Timeout, OnOutage: o.OnOutage, Now: o.Now, OnStore: told, Aside: true,
	})
}
