package rediscooldown

import (
	"time"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
)

// Options is how a cooldown uses its store. Zero fields mean the default.
type Options struct {
	// Prefix of the key, which is Prefix:cooldown:{name}; "" = "fairlead"; at most 256 bytes.
	Prefix string
	// Timeout of one store call; 0 = 50 ms; else positive.
	Timeout time.Duration
	// OnOutage is what happens to calls while the store cannot be asked and no instant is known here; 0 = leaf.FailLocal, which
	// admits them, as leaf.FailOpen does.
	OnOutage leaf.Outage
	// Now is virtual time for tests; nil = the server's TIME. Keys then live at least 1 h.
	Now func() time.Time
	// OnStore is told when the store fails and when it recovers; nil = nobody is. It runs outside every lock, and may call this
	// cooldown, though not its Close; no call waits for one that is slow. Its panic reaches the next Acquire.
	OnStore leaf.OnStore
}

func (o Options) store() redisscript.Options {
	return redisscript.Options{Prefix: o.Prefix, Timeout: o.Timeout, OnOutage: o.OnOutage, Now: o.Now, OnStore: o.OnStore, Aside: true}
}
