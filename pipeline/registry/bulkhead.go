package registry

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/bulkhead/redisbulkhead"
)

// requires is the error of an entry that lacks a key.
func requires(a at, key, want string) error {
	return fmt.Errorf("%s is missing: want %s", join(a.path, key), want)
}

// slotsSpec is one bulkhead as it was configured.
type slotsSpec struct {
	entry
	cfg   bulkhead.Config
	lease time.Duration
	sharing
}

type slots interface {
	bulkhead.Slots
	Update(bulkhead.Config) error
	Config() bulkhead.Config
}

func sharingOfSlots(s *slotsSpec) *sharing { return &s.sharing }

var slotsKind = &kind[slotsSpec, slots]{
	section: "bulkhead",
	entry:   func(s *slotsSpec) *entry { return &s.entry },
	keys: []key[slotsSpec]{
		wholeKey("max-concurrent", 1, math.MaxInt, func(s *slotsSpec) *int { return &s.cfg.MaxConcurrent }),
		durationKey("max-wait", orZero, func(s *slotsSpec) *time.Duration { return &s.cfg.MaxWait }),
		{name: "max-queue", read: wholeKey("", 1, math.MaxInt, queueOf).read, show: func(s *slotsSpec) string {
			switch {
			case s.cfg.MaxQueue > 0:
				return number(s.cfg.MaxQueue)
			case s.cfg.MaxWait > 0:
				return "as many as wait"
			}
			return ""
		}},
		sharedKey(sharingOfSlots),
		ofSharing(durationKey("permit-ttl", positive, func(s *slotsSpec) *time.Duration { return &s.lease }), sharingOfSlots),
		outageOf(sharingOfSlots),
		instancesOf(sharingOfSlots),
	},
	needs: func(d *decoder, s *slotsSpec) {
		if !s.has("max-concurrent") {
			d.add(requires(s.at, "max-concurrent", "the number of calls at once, from 1"))
		}
	},
	check: func(d *decoder, s *slotsSpec) {
		s.cfg.Name = s.name
		s.inherit(&s.entry, d.store)
		if !s.has("permit-ttl") {
			s.lease = max(time.Minute, 2*d.store.timeout)
		}
		if !s.has("max-concurrent") {
			return
		}
		if s.shared && s.lease <= d.store.timeout {
			d.bad(s.place("permit-ttl"), "more than store.timeout, %v", d.store.timeout)
		}
		_, err := bulkhead.New(s.cfg)
		d.translate(&s.entry, "bulkhead", map[string]string{"MaxConcurrent": "max-concurrent", "MaxWait": "max-wait", "MaxQueue": "max-queue"}, err)
	},
	make: func(e *env, s *slotsSpec) (slots, error) {
		if !s.shared {
			return bulkhead.New(s.config(e))
		}
		return redisbulkhead.New(e.store.client, s.config(e), s.options(e))
	},
	update:  func(e *env, b slots, s *slotsSpec) error { return b.Update(s.config(e)) },
	shared:  func(s *slotsSpec) bool { return s.shared },
	inspect: func(b slots) (leaf.Snapshot, bool) { return b.Inspect(), true },
	inForce: func(b slots, s *slotsSpec) slotsSpec {
		now := *s
		now.cfg = b.Config()
		return now
	},
	close: func(ctx context.Context, b slots) error { return closeShared(ctx, b) },
}

func queueOf(s *slotsSpec) *int { return &s.cfg.MaxQueue }

func (s *slotsSpec) options(e *env) redisbulkhead.Options {
	return redisbulkhead.Options{
		Prefix: e.store.prefix, Timeout: e.store.timeout, OnOutage: s.outage, Instances: s.instances, LeaseTTL: s.lease, OnStore: e.onStore,
	}
}

func (s *slotsSpec) config(e *env) bulkhead.Config {
	cfg := s.cfg
	cfg.Clock = e.clock
	return cfg
}
