package redisbulkhead

import (
	"errors"
	"time"

	"github.com/fairlead/fairlead/internal/check"
	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
)

// defaultLease is Options.LeaseTTL's default.
const defaultLease = time.Minute

// longestLease keeps every instant exact in the store's numbers.
const longestLease = 365 * 24 * time.Hour

// Options: zero fields mean the documented default.
type Options struct {
	// Prefix of the key, prefix:bulkhead:{name}; "" = "fairlead"; at most 256 bytes.
	Prefix string
	// Timeout of one store call; 0 = 50ms; else positive. A call that arrives while another is under way rides on the next, so
	// that its own wait is up to twice as long with a store that is slow but answers; with one that does not, it is not.
	Timeout time.Duration
	// OnOutage is what admits while the store cannot be asked; the default is leaf.FailLocal.
	OnOutage leaf.Outage
	// Instances is how many processes share the slots; 0 = 1; else from 1. In a FailLocal outage each admits
	// max(1, floor(MaxConcurrent/Instances)) calls of its own.
	Instances int
	// LeaseTTL is how long the store keeps a slot for a process that is not heard of; 0 = 1m (twice Timeout, if that is longer); else longer than Timeout, at most
	// a year. It is renewed at a third of it while the call runs, so a call may last longer. All processes of one name should
	// use the same.
	LeaseTTL time.Duration
	// Now is virtual time for tests; nil = the server's TIME. It is asked from several goroutines.
	Now func() time.Time
	// OnStore is told when the store fails, when it recovers, and when a permit came back after its lease (overage).
	// nil = nobody is told. It runs outside every lock, and may call this bulkhead, though not its Close; its panic reaches
	// the next Acquire.
	OnStore leaf.OnStore
}

// check is o with its defaults, and everything that is wrong with it, except for what the store's own options say.
func (o Options) check() (Options, error) {
	var bad check.List
	if o.Instances < 0 {
		bad.Bad("redisbulkhead", "Instances", o.Instances, "0 (1) or more")
	}
	if o.Instances == 0 {
		o.Instances = 1
	}
	if o.Timeout == 0 {
		o.Timeout = redisscript.DefaultTimeout
	}
	if o.LeaseTTL == 0 {
		o.LeaseTTL = max(defaultLease, 2*o.Timeout)
	}
	switch {
	case o.LeaseTTL <= 0:
		bad.Bad("redisbulkhead", "LeaseTTL", o.LeaseTTL, "0 (1m) or a positive duration")
	case o.LeaseTTL > longestLease:
		bad.Bad("redisbulkhead", "LeaseTTL", o.LeaseTTL, "at most a year")
	case o.LeaseTTL <= o.Timeout:
		bad.Bad("redisbulkhead", "LeaseTTL", o.LeaseTTL, "longer than Timeout, "+o.Timeout.String()+
			": a permit must outlive the call that takes it")
	}
	return o, bad.Err()
}

func (o Options) store() redisscript.Options {
	return redisscript.Options{
		Prefix: o.Prefix, Timeout: o.Timeout, OnOutage: o.OnOutage, Now: o.Now, OnStore: o.OnStore, Aside: true,
	}
}

var (
	errClosed   = errors.New("the guard is closed")
	errNoAnswer = errors.New("no answer in time")
	errReply    = errors.New("the script's reply is not what was asked for")
)
