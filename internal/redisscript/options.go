package redisscript

import (
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
)

// DefaultTimeout is Options.Timeout's default.
const DefaultTimeout = 50 * time.Millisecond

// Options is what every shared guard lets its user choose. Zero fields mean the default.
type Options struct {
	Prefix   string           // of every key; "" = [DefaultPrefix]; at most 256 bytes
	Timeout  time.Duration    // of one store call; 0 = [DefaultTimeout]; else positive
	OnOutage leaf.Outage      // 0 = leaf.FailLocal
	Now      func() time.Time // nil = the server's TIME; virtual time for tests
	OnStore  leaf.OnStore     // nil = nobody is told
	// Aside: whoever tells OnStore waits for it for 2 ms at most, because the guard's other calls ride on it.
	Aside bool
}

// Check is o with its defaults, and everything that is wrong with it; pkg stands in the errors.
func (o Options) Check(pkg string, client redis.UniversalClient) (Options, error) {
	var bad check.List
	if check.Nil(client) {
		bad.Bad(pkg, "client", "nil", "a redis client")
	}
	if len(o.Prefix) > 256 {
		bad.Bad(pkg, "Prefix", len(o.Prefix), "at most 256 bytes")
	}
	if o.Timeout < 0 {
		bad.Bad(pkg, "Timeout", o.Timeout, "0 (50ms) or a positive duration")
	}
	if o.OnOutage > leaf.FailClosed {
		bad.Bad(pkg, "OnOutage", o.OnOutage, "fail_local, fail_open or fail_closed")
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return o, bad.Err()
}
