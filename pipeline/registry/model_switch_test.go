package registry

import (
	"context"

	"github.com/fairlead/fairlead/pipeline"
)

// spy has each step of every commit looked at.
func (m *modelRun) spy() {
	spied(m.reg.retries, m.look)
	spied(m.reg.budgets, m.look)
	spied(m.reg.breakers, m.look)
	spied(m.reg.limits, m.look)
	spied(m.reg.bulkheads, m.look)
	spied(m.reg.cooldowns, m.look)
}

// look: while a document is put in force, all pipelines that there ever were are what the old one made of them, or all are
// plain calls, where either document says so.
func (m *modelRun) look() {
	m.looks++
	if m.next == nil { // a Get, which serves a name with defaults
		return
	}
	for name, p := range m.pipes {
		want := name + ": fn"
		if m.next.enabled && m.ref.doc.enabled {
			want = m.ref.nesting(name)
		}
		m.same(want, p.String(), "pipeline "+name+" in the middle of a reload")
	}
}

// subscribe has the calls of each pipeline told, from when it is first there.
func (m *modelRun) subscribe() {
	for name, p := range m.pipes {
		if _, had := m.told[name]; had {
			continue
		}
		m.told[name] = 0
		p.Subscribe(func(_ context.Context, e pipeline.Event) {
			if e.Kind == pipeline.CallFinished {
				m.told[name]++
			}
		})
	}
}
