package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
)

// store is where shared instances live, as it was configured.
type store struct {
	entry
	redis     string
	timeout   time.Duration
	prefix    string
	outage    leaf.Outage
	instances int

	client redis.UniversalClient
	owned  bool
}

var storeKeys = []key[store]{
	{name: "redis", read: readURL, secret: true, show: func(s *store) string {
		if s.redis == "" {
			return ""
		}
		return printable(concealed(s.redis))
	}},
	durationKey("timeout", positive, func(s *store) *time.Duration { return &s.timeout }),
	{name: "prefix", read: readPrefix, show: func(s *store) string { return s.prefix }},
	outageKey(func(s *store) *leaf.Outage { return &s.outage }),
	wholeKey("instances", 1, math.MaxInt, func(s *store) *int { return &s.instances }),
}

func newStore(root string) *store {
	return &store{entry: entry{at: at{path: join(root, "store"), node: nothing, secret: true}}, timeout: redisscript.DefaultTimeout, prefix: redisscript.DefaultPrefix, instances: 1}
}

// readURL keeps what redis.ParseURL takes. Nothing is dialled: not now, and not when the client is made.
func readURL(d *decoder, a at, s *store) {
	text, ok := a.plain()
	o, err := redis.ParseURL(text)
	switch {
	case !ok:
		d.bad(a, "a URL such as redis://127.0.0.1:6379/0")
	case err != nil: // its text may repeat the password
		is := `""`
		if text != "" {
			is = "a text without a scheme"
		}
		if urlScheme.MatchString(text) {
			is = printable(concealed(text))
		}
		d.add(fmt.Errorf("%s is %s: want a URL such as redis://127.0.0.1:6379/0 (rediss for TLS, unix for a socket; Sentinel and Cluster need registry.WithClient)", a.path, is))
	case o.MinIdleConns > 0:
		d.add(fmt.Errorf("%s is %s: want it without min_idle_conns, since loading never dials the store (use WithClient)", a.path, printable(concealed(text))))
	default:
		s.redis = text
	}
}

func readPrefix(d *decoder, a at, s *store) {
	text, ok := a.plain()
	if !ok || text == "" || len(text) > 256 {
		d.bad(a, "a text of 1 to 256 bytes")
		return
	}
	s.prefix = text
}

// same says that was is this store: guards that are shared keep the one that they were made with.
func (s *store) same(d *decoder, was *store) {
	for _, k := range storeKeys {
		if (k.name == "redis" && s.redis != was.redis) || k.show(s) != k.show(was) {
			want := k.show(was)
			if want == "" {
				want = "no value"
			}
			text := k.show(s)
			if text == "" {
				text = "absent"
			}
			d.add(fmt.Errorf("%s is %s: want %s, as it is while instances are shared: a reload cannot change it, a restart can", join(s.at.path, k.name), text, want))
		}
	}
}

// open makes the client, or takes the program's. It dials lazily.
func (s *store) open(o *options) error {
	if s.client = o.client; s.client != nil {
		return nil
	}
	if s.redis == "" {
		return requires(s.at, "redis", "a URL such as redis://127.0.0.1:6379/0, or registry.WithClient, where instances are shared")
	}
	opts, err := redis.ParseURL(s.redis)
	if err != nil {
		return errors.New("the store's URL is none")
	}
	if opts.DialerRetries == 0 {
		opts.DialerRetries = 1 // a server that is gone is known to be gone at once
	}
	s.client, s.owned = redis.NewClient(opts), true
	return nil
}

// end closes a client that the registry made.
func (s *store) end() error {
	if s == nil || !s.owned {
		return nil
	}
	s.owned = false
	return s.client.Close()
}

// sharing is what an instance says of the store.
type sharing struct {
	shared    bool
	outage    leaf.Outage
	instances int
	idle      time.Duration // -1 = never
}

// sharedKey switches the sharing on.
func sharedKey[S any](field func(*S) *sharing) key[S] {
	return fixed(boolKey("shared", func(s *S) *bool { return &field(s).shared }))
}

// ofSharing are keys that have no effect on an instance that is not shared, and are read all the same.
func ofSharing[S any](k key[S], field func(*S) *sharing) key[S] {
	show := k.show
	k.show = func(s *S) string {
		if !field(s).shared {
			return ""
		}
		return show(s)
	}
	return fixed(k)
}

func outageOf[S any](field func(*S) *sharing) key[S] {
	return ofSharing(outageKey(func(s *S) *leaf.Outage { return &field(s).outage }), field)
}

func instancesOf[S any](field func(*S) *sharing) key[S] {
	return ofSharing(wholeKey("instances", 1, math.MaxInt, func(s *S) *int { return &field(s).instances }), field)
}

// idleKey: null, 0 and negative values mean that the key never expires, never "at once".
func idleKey[S any](field func(*S) *sharing) key[S] {
	k := key[S]{name: "idle-ttl", null: true}
	k.read = func(d *decoder, a at, s *S) {
		field(s).idle = -1
		if text, ok := a.plain(); a.null() || ok && len(text) > 1 && text[0] == '-' {
			if !a.null() && !durable(text[1:]) {
				d.bad(a, "a duration such as 720h, or 0, a negative one or null (never)")
			}
			return
		}
		if v, ok := d.duration(a, orZero); ok && v > 0 {
			if v < time.Millisecond {
				d.bad(a, "1ms or more, or 0 (never)")
			}
			field(s).idle = v
		}
	}
	k.show = func(s *S) string {
		switch idle := field(s).idle; idle {
		case -1:
			return "never"
		default:
			return idle.String()
		}
	}
	return ofSharing(k, field)
}

func durable(text string) bool {
	_, err := parseDuration(text)
	return err == nil
}

// inherit is what the store says where the instance says nothing.
func (s *sharing) inherit(e *entry, from *store) {
	if !e.has("on-outage") {
		s.outage = from.outage
	}
	if !e.has("instances") {
		s.instances = from.instances
	}
}

// closer is a shared guard.
type closer interface {
	Close(ctx context.Context) error
}

func closeShared(ctx context.Context, item any) error {
	if c, ok := item.(closer); ok {
		return c.Close(ctx)
	}
	return nil
}
