package registry

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/fairlead/fairlead/leaf/cooldown/rediscooldown"
)

// cooldownSpec is one cooldown as it was configured.
type cooldownSpec struct {
	entry
	cfg cooldown.Config
	sharing
}

// Cooling is what the local cooldown and the shared one have in common.
type Cooling interface {
	leaf.Guard
	leaf.Peeker
	leaf.Hinter
	leaf.Inspector
	// Wait is how long it refuses from now on, as far as this process knows: no store is asked; 0 = it admits.
	Wait() time.Duration
}

type cooling interface {
	Cooling
	Update(cooldown.Config) error
	Config() cooldown.Config
}

func sharingOfCooldown(s *cooldownSpec) *sharing { return &s.sharing }

var cooldownKind = &kind[cooldownSpec, cooling]{
	section: "cooldown",
	entry:   func(s *cooldownSpec) *entry { return &s.entry },
	keys: []key[cooldownSpec]{
		durationKey("max", positive, func(s *cooldownSpec) *time.Duration { return &s.cfg.Max }),
		sharedKey(sharingOfCooldown),
		outageOf(sharingOfCooldown),
	},
	check: func(d *decoder, s *cooldownSpec) {
		s.cfg.Name = s.name
		s.inherit(&s.entry, d.store)
		_, err := cooldown.New(s.cfg)
		d.translate(&s.entry, "cooldown", map[string]string{"Max": "max"}, err)
	},
	make: func(e *env, s *cooldownSpec) (cooling, error) {
		if !s.shared {
			return cooldown.New(s.config(e))
		}
		return rediscooldown.New(e.store.client, s.config(e), s.options(e))
	},
	update:  func(e *env, c cooling, s *cooldownSpec) error { return c.Update(s.config(e)) },
	shared:  func(s *cooldownSpec) bool { return s.shared },
	inspect: func(c cooling) (leaf.Snapshot, bool) { return c.Inspect(), true },
	inForce: func(c cooling, s *cooldownSpec) cooldownSpec {
		now := *s
		now.cfg = c.Config()
		return now
	},
	close: func(ctx context.Context, c cooling) error { return closeShared(ctx, c) },
}

func (s *cooldownSpec) options(e *env) rediscooldown.Options {
	return rediscooldown.Options{Prefix: e.store.prefix, Timeout: e.store.timeout, OnOutage: s.outage, OnStore: e.onStore}
}

func (s *cooldownSpec) config(e *env) cooldown.Config {
	cfg := s.cfg
	cfg.Clock = e.clock
	return cfg
}
