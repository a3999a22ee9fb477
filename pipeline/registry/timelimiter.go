package registry

import (
	"fmt"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/timeout"
)

// timeoutSpec is one time limiter as it was configured.
type timeoutSpec struct {
	entry
	cfg timeout.Config
}

var timeoutKind = &kind[timeoutSpec, *timeout.Timeout]{
	section: "time-limiter",
	entry:   func(s *timeoutSpec) *entry { return &s.entry },
	keys: []key[timeoutSpec]{
		durationKey("timeout", positive, func(s *timeoutSpec) *time.Duration { return &s.cfg.Limit }),
	},
	needs: func(d *decoder, s *timeoutSpec) {
		if !s.has("timeout") {
			d.add(requires(s.at, "timeout", "a positive duration"))
		}
	},
	check: func(d *decoder, s *timeoutSpec) {
		s.cfg.Name = s.name
		if durationLike(s.name) {
			d.add(fmt.Errorf("%s has a name that reads as a duration: want another, since a pipeline's timeout may be either", s.at.path))
		}
	},
	make:    func(e *env, s *timeoutSpec) (*timeout.Timeout, error) { return timeout.New(s.config(e)) },
	update:  func(e *env, t *timeout.Timeout, s *timeoutSpec) error { return t.Update(s.config(e)) },
	inspect: func(*timeout.Timeout) (leaf.Snapshot, bool) { return leaf.Snapshot{}, false },
	inForce: func(t *timeout.Timeout, s *timeoutSpec) timeoutSpec {
		now := *s
		now.cfg = t.Config()
		return now
	},
}

func (s *timeoutSpec) config(e *env) timeout.Config {
	cfg := s.cfg
	cfg.Clock = e.clock
	return cfg
}
