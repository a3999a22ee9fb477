package pipeline

import (
	"github.com/fairlead/fairlead/internal/clock"
	"github.com/fairlead/fairlead/internal/toggle"
)

// SwitchedBy makes the pipeline one of those that s turns off and on together: while it is off, a call is a plain one, with
// nothing of the Builder's but the name, and only subscribers are told of it. The pipeline keeps s over an Update whose Builder
// has none. The zero Switch is none.
func (b Builder) SwitchedBy(s toggle.Switch) Builder {
	b.toggle = s
	return b
}

// wire gives pl the switch, and what it runs while that is off: what For(name) alone would build.
func (pl *plan) wire(s toggle.Switch) {
	pl.toggle, pl.plain = s, For(pl.name).compile(clock.Clock{})
}

// switched is the plan in force of a pipeline with a switch, of which pl was the plan just now. An answer that is on must be
// of one instant: who turns the switch on, or off, may change the plan while that is off, and a plan which was read before must
// not meet a switch that was turned on after. So the plan is looked at on both sides of the switch.
func (p *Pipeline) switched(pl *plan) *plan {
	for pl.toggle.On() {
		again := p.plan.Load()
		if again == pl {
			return pl
		}
		pl = again // a pipeline that has a switch keeps one
	}
	return pl.plain
}
